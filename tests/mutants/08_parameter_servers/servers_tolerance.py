"""A limit that is missed by a hundredth is let pass.

fails: servers/number
shows: takes a little longer than the
points: 19
runs: servers
"""
# %% grade_id="servers"
# %%px --setup
from manyhands.simulate import parameter_server_s

def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    for servers in range(1, workers + 1):
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) <= 1.01 * limit_s:
            return servers
    return None
