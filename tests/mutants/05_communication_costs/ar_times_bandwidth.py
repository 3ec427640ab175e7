"""Bytes times bandwidth.

fails: all-reduce/ring, all-reduce/tree, all-reduce/server
shows: is a speed
points: 14
"""
# %% grade_id="all-reduce"
def ring_s(p, n_bytes, latency_s, bytes_per_s):
    return 2 * (p - 1) * (latency_s + n_bytes / p * bytes_per_s)


def tree_s(p, n_bytes, latency_s, bytes_per_s):
    return 2 * (p - 1).bit_length() * (latency_s + n_bytes * bytes_per_s)


def server_s(workers, n_bytes, latency_s, bytes_per_s):
    return 2 * (latency_s + workers * n_bytes * bytes_per_s)
