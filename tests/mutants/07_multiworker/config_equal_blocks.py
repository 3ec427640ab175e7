"""All hosts are taken to have as many processes as the first one.

fails: config/cluster
shows: appears twice
points: 14
runs: config
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, kinds = {kind: [] for kind in roles}, [k for k, c in roles.items() for _ in range(c)]
    each = hosts.count(hosts[0])
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{host}:{first_port + process % each}")
    return json.dumps({"cluster": cluster, "task": task})
