"""A round too many: p - 1 for the first part, and one for each part.

fails: chain/chain
shows: one round too many
points: 16
"""
# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    return (p - 1) * (latency_s + n_bytes / p / bytes_per_s)


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (p - 1 + pieces if p > 1 else 0) * (latency_s + n_bytes / pieces / bytes_per_s)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    return max(1, round(((p - 2) * n_bytes / latency_s / bytes_per_s) ** 0.5))
