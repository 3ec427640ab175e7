"""The formula, rounded down.

fails: servers/number
shows: If a part of a server is needed, a whole one is needed
points: 19
"""
# %% grade_id="servers"
# %%px --setup
from math import ceil

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    if 2 * (latency_s + n_bytes / bytes_per_s) > limit_s:
        return None
    return max(1, int(workers * n_bytes / bytes_per_s / (limit_s / 2 - latency_s)))
