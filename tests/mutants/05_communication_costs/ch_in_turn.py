"""Each rank waits for the whole tensor before it passes anything on.

fails: chain/chain
shows: a rank passes a part on while it receives the next one
points: 16
"""
# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    return (p - 1) * (latency_s + n_bytes / p / bytes_per_s)


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (p - 1) * pieces * (latency_s + n_bytes / pieces / bytes_per_s)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    return max(1, round(((p - 2) * n_bytes / latency_s / bytes_per_s) ** 0.5))
