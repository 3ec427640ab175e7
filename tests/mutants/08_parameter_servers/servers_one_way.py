"""Only the push is counted.

fails: servers/number
shows: only half of the exchange
points: 19
"""
# %% grade_id="servers"
# %%px --setup
from math import ceil

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    if latency_s + n_bytes / bytes_per_s > limit_s:
        return None
    return max(1, ceil(workers * n_bytes / bytes_per_s / (limit_s - latency_s)))
