"""One more than the limit, which `range` leaves out and the learner adds.

fails: ranks/ranks
shows: must not be larger than the limit
points: 15
"""
# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    def slower(p):
        depth = (p - 1).bit_length()
        return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s) > 2 * depth * (latency_s + n_bytes / bytes_per_s)

    return max(p for p in range(1, limit + 2) if not slower(p))
