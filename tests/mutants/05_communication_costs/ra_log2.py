"""log2 p is not rounded up.

fails: ranks/ranks
shows: rounded up
points: 15
"""
# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    def slower(p):
        depth = np.log2(p)
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s) > 2 * depth * (latency_s + n_bytes / bytes_per_s)

    return max(p for p in range(1, limit + 1) if not slower(p))
