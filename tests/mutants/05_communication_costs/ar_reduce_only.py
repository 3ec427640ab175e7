"""The tree's sum, without the broadcast.

fails: all-reduce/tree
shows: this is one half of it
points: 16
"""
# %% grade_id="all-reduce"
def ring_s(p, n_bytes, latency_s, bytes_per_s):
    return 2 * (p - 1) * (latency_s + n_bytes / p / bytes_per_s)


def tree_s(p, n_bytes, latency_s, bytes_per_s):
    return (p - 1).bit_length() * (latency_s + n_bytes / bytes_per_s)


def server_s(workers, n_bytes, latency_s, bytes_per_s):
    return 2 * (latency_s + workers * n_bytes / bytes_per_s)
