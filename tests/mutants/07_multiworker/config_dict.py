"""A dict is returned, not its text.

fails: config/cluster config/task
shows: return a text, json.dumps
points: 13
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used = {kind: [] for kind in roles}, {}
    kinds = [kind for kind, count in roles.items() for _ in range(count)]
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{host}:{first_port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return {"cluster": cluster, "task": task}
