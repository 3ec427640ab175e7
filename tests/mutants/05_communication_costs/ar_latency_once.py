"""The ring pays its latency once.

fails: all-reduce/ring
shows: every round begins with a latency
points: 16
"""
# %% grade_id="all-reduce"
def ring_s(p, n_bytes, latency_s, bytes_per_s):
    return latency_s + 2 * (p - 1) / p * n_bytes / bytes_per_s


def tree_s(p, n_bytes, latency_s, bytes_per_s):
    return 2 * (p - 1).bit_length() * (latency_s + n_bytes / bytes_per_s)


def server_s(workers, n_bytes, latency_s, bytes_per_s):
    return 2 * (latency_s + workers * n_bytes / bytes_per_s)
