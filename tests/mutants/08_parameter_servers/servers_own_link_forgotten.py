"""The formula without a worker's own link: it always finds a number.

fails: servers/number
shows: each worker's own link carries all the bytes
points: 19
"""
# %% grade_id="servers"
# %%px --setup
from math import ceil

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    return max(1, ceil(workers * n_bytes / bytes_per_s / (limit_s / 2 - latency_s)))
