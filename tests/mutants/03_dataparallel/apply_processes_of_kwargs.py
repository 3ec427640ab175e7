"""Keyword arguments are forgotten.

fails: apply/results
shows: without its keyword arguments
points: 22
runs: apply
"""
# %% grade_id="apply"
def parallel_apply(replicas, inputs, kwargs, devices):
    kind = torch.device(devices[0]).type
    grad, on, dtype = torch.is_grad_enabled(), torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    results, errors = [None] * len(replicas), {}
    def work(i):
        try:
            with torch.set_grad_enabled(grad), torch.autocast(kind, dtype=dtype, enabled=on):
                results[i] = replicas[i](*inputs[i])
        except Exception as error:
            errors[i] = error
    threads = [Thread(target=work, args=(i,)) for i in range(len(replicas))]
    [t.start() for t in threads]; [t.join() for t in threads]
    if errors:
        raise RuntimeError(f"replica {min(errors)}") from errors[min(errors)]
    return results
