"""range(1, workers) never tries as many servers as workers.

fails: servers/number
shows: range(1,
shows: ends before
points: 19
"""
# %% grade_id="servers"
# %%px --setup
def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    for servers in range(1, workers):
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) <= limit_s:
            return servers
    return None
