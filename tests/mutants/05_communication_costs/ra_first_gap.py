"""Stops at the first number of ranks on which the ring is slower.

fails: ranks/ranks
shows: you stop at the first number of ranks
points: 15
"""
# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    def slower(p):
        depth = (p - 1).bit_length()
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s) > 2 * depth * (latency_s + n_bytes / bytes_per_s)

    p = 1
    while p < limit and not slower(p + 1):
        p += 1
    return p
