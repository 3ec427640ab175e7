"""The ports start again at a host that has been there before, with another one in between.

fails: config/cluster
shows: appears twice
points: 14
runs: config
"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    cluster, kinds = {kind: [] for kind in roles}, [k for k, c in roles.items() for _ in range(c)]
    port, last = first_port, None
    for process, (host, kind) in enumerate(zip(hosts, kinds)):
        port = port + 1 if host == last else first_port
        last = host
        if process == number:
            task = {"type": kind, "index": len(cluster[kind])}
        cluster[kind].append(f"{host}:{port}")
    return json.dumps({"cluster": cluster, "task": task})
