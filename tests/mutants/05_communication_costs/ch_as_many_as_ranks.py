"""As many pieces as ranks, as in a ring.

fails: chain/pieces
shows: so try several numbers with chain_s
points: 15
"""
# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    return (p - 1) * (latency_s + n_bytes / p / bytes_per_s)


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (p - 2 + pieces if p > 1 else 0) * (latency_s + n_bytes / pieces / bytes_per_s)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    return p
