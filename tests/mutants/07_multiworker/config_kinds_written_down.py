"""The kinds, and their order, are written down.

fails: config/cluster, config/task
shows: raised UnboundLocalError
points: 13
runs: config
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used, process = {}, {}, 0
    for kind in ("chief", "worker", "ps"):
        for i in range(roles.get(kind, 0)):
            host = hosts[process]
            cluster.setdefault(kind, []).append(f"{host}:{first_port + used.get(host, 0)}")
            used[host] = used.get(host, 0) + 1
            if process == number:
                task = {"type": kind, "index": i}
            process += 1
    return json.dumps({"cluster": cluster, "task": task})
