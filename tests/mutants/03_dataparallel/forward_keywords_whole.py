"""Keyword arguments go to all replicas whole.

fails: forward/outputs
shows: Cut positional and keyword arguments together, with every tensor in them
points: 22
runs: forward
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    own_inputs = scatter(inputs, devices)
    used = devices[:len(own_inputs)]
    return gather(parallel_apply(replicate(module, used), own_inputs, [kwargs] * len(used), used), output_device)
