"""A search by halving, as if there were no gaps.

fails: ranks/ranks
shows: With limit
points: 15
"""
# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    def slower(p):
        depth = (p - 1).bit_length()
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s) > 2 * depth * (latency_s + n_bytes / bytes_per_s)

    low, high = 1, limit + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if slower(middle) else (middle, high)
    return low
