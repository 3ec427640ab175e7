"""Less than, where at most is meant.

fails: servers/number
shows: because the rule is at most, not less than
points: 19
"""
# %% grade_id="servers"
# %%px --setup
def fewest_servers(workers, n_bytes, latency_s, bytes_per_s, limit_s):
    for servers in range(1, workers + 1):
        if parameter_server_s(workers, n_bytes, latency_s, bytes_per_s, servers) < limit_s:
            return servers
    return None
