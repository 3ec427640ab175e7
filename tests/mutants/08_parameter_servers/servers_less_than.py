"""Less than, where at most is meant.

fails: servers/number
shows: a limit that is just reached is kept
points: 19
"""
# %% grade_id="servers"
# %%px --setup
def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    for servers in range(1, workers + 1):
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) < limit_s:
            return servers
    return None
