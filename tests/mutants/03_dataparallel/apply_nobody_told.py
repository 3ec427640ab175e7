"""Nothing is caught: an exception ends its thread, and the result is None.

fails: apply/errors
shows: the caller did not notice
points: 22
runs: apply
"""
# %% grade_id="apply"
def parallel_apply(replicas, inputs, kwargs, devices):
    kind = torch.device(devices[0]).type
    grad, on, dtype = torch.is_grad_enabled(), torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    results = [None] * len(replicas)

    def work(i):
        with torch.set_grad_enabled(grad), torch.autocast(kind, dtype=dtype, enabled=on):
            results[i] = replicas[i](*inputs[i], **kwargs[i])

    threads = [Thread(target=work, args=(i,)) for i in range(len(replicas))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
