"""All processes have one port, also on one host.

fails: config/cluster
shows: Two processes on one host cannot have one port
points: 14
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used = {kind: [] for kind in roles}, {}
    kinds = [kind for kind, count in roles.items() for _ in range(count)]
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{host}:{first_port}")
        used[host] = used.get(host, 0) + 1
    return json.dumps({"cluster": cluster, "task": task})
