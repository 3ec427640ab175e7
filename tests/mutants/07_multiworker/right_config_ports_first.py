"""Another way: the addresses first, then cut by kind.

"""
# %% grade_id="config"
def tf_config(hosts, first_port, roles, number):
    addresses = [f"{host}:{first_port + hosts[:i].count(host)}" for i, host in enumerate(hosts)]
    cluster, task, begin = {}, None, 0
    for kind, count in roles.items():
        cluster[kind] = addresses[begin:begin + count]
        if begin <= number < begin + count:
            task = {"index": number - begin, "type": kind}
        begin += count
    return json.dumps({"task": task, "cluster": cluster}, indent=1)
