"""No more than 30 servers are tried.

fails: servers/number
shows: the answer is different. Find the smallest number
points: 19
runs: servers
"""
# %% grade_id="servers"
# %%px --setup
from manyhands.simulate import parameter_server_s

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    for servers in range(1, min(workers, 30) + 1):
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) <= limit_s:
            return servers
    return None
