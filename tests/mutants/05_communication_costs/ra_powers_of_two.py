"""Looks at powers of two only.

fails: ranks/ranks
shows: powers of two only
points: 15
"""
# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    def slower(p):
        depth = (p - 1).bit_length()
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s) > 2 * depth * (latency_s + n_bytes / bytes_per_s)

    return max(2**k for k in range(limit.bit_length()) if 2**k <= limit and not slower(2**k))
