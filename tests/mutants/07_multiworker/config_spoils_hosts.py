"""The list of hosts is emptied.

fails: config/cluster, config/task
shows: has changed `hosts`, which belongs to its caller
points: 13
runs: config
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used, process = {}, {}, 0
    for kind, count in roles.items():
        cluster[kind] = []
        for i in range(count):
            host = hosts.pop(0)
            cluster[kind].append(f"{host}:{first_port + used.get(host, 0)}")
            used[host] = used.get(host, 0) + 1
            if process == number:
                task = {"type": kind, "index": i}
            process += 1
    return json.dumps({"cluster": cluster, "task": task})
