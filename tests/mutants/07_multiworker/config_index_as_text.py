"""The index is text.

fails: config/task
shows: The index must be a number, and not text
points: 15
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used = {kind: [] for kind in roles}, {}
    kinds = [kind for kind, count in roles.items() for _ in range(count)]
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": str(len(cluster[kind]))}
        cluster[kind].append(f"{host}:{first_port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return json.dumps({"cluster": cluster, "task": task})
