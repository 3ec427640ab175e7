"""Slices in place of chunk, a pool of threads, the original as replica 0, means with their weights."""
# %% grade_id="scatter"
def scatter(value, devices):
    k = len(devices)
    if torch.is_tensor(value):
        size = -(-len(value) // k)
        return [value[i:i + size].to(device) for i, device in zip(range(0, len(value), size), devices)]
    if isinstance(value, dict) and value:
        columns = {key: scatter(one, devices) for key, one in value.items()}
        return [{key: column[i] for key, column in columns.items()} for i in range(min(map(len, columns.values())))]
    if isinstance(value, (tuple, list)) and value:
        columns = [scatter(one, devices) for one in value]
        return [type(value)(column[i] for column in columns) for i in range(min(map(len, columns)))]
    return [value for _ in devices]
# %% grade_id="replicate"
def replicate(module, devices):
    def other(device):
        memo = {}
        for one in [*module.parameters(), *module.buffers()]:
            memo[id(one)] = one.clone().to(device)
        return copy.deepcopy(module, memo)

    return [module] + [other(device) for device in devices[1:]]
# %% grade_id="apply"
def parallel_apply(replicas, inputs, kwargs, devices):
    from concurrent.futures import ThreadPoolExecutor

    kind = torch.device(devices[0]).type
    modes = torch.is_grad_enabled(), torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)

    def work(replica, args, more):
        torch.set_grad_enabled(modes[0])
        with torch.autocast(kind, enabled=modes[1], dtype=modes[2]):
            return replica(*args, **more)

    with ThreadPoolExecutor(len(replicas)) as pool:
        futures = [pool.submit(work, *one) for one in zip(replicas, inputs, kwargs)]
    for i, future in enumerate(futures):
        if future.exception():
            raise RuntimeError(f"in replica {i}") from future.exception()
    return [future.result() for future in futures]
# %% grade_id="loss"
def loss_part(scores, labels):
    return {"mean": cross_entropy(scores, labels), "rows": torch.tensor(float(len(scores)), dtype=scores.dtype, device=scores.device)}


def whole_loss(gathered):
    return (gathered["mean"] * gathered["rows"] / gathered["rows"].sum()).sum()
