"""The own address is written as localhost: every process has another list.

fails: config/cluster
shows: Give the name that all can reach
points: 14
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, used = {kind: [] for kind in roles}, {}
    kinds = [kind for kind, count in roles.items() for _ in range(count)]
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{'localhost' if process == number else host}:{first_port + used.get(host, 0)}")
        used[host] = used.get(host, 0) + 1
    return json.dumps({"cluster": cluster, "task": task})
