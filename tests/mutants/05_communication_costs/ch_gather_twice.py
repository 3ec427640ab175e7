"""The all-gather has the rounds of an all-reduce.

fails: chain/gather
shows: but an all-gather is its second half only
points: 16
"""
# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s)


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (p - 2 + pieces if p > 1 else 0) * (latency_s + n_bytes / pieces / bytes_per_s)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    return max(1, round(((p - 2) * n_bytes / latency_s / bytes_per_s) ** 0.5))
