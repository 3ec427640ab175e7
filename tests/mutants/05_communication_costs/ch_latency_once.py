"""The latency is counted once.

fails: chain/gather, chain/chain
shows: every round begins with its own latency
points: 15
"""
# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    return latency_s + (p - 1) / p * n_bytes / bytes_per_s


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (latency_s + (p - 2 + pieces) * n_bytes / pieces / bytes_per_s) * (p > 1)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    return max(1, round(((p - 2) * n_bytes / latency_s / bytes_per_s) ** 0.5))
