"""str() writes Python's quotes, which are not JSON's.

fails: config/cluster config/task
shows: str(dict) has the wrong quotes
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
    return str({"cluster": cluster, "task": task})
