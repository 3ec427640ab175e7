"""The positional arguments say how many replicas there are, and the keyword arguments are cut short to that.

fails: forward/outputs
shows: the number of pieces decides how many replicas there are
points: 22
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    own_inputs, own_kwargs = scatter(inputs, devices), scatter(kwargs, devices)
    used = devices[:len(own_inputs)]
    outputs = parallel_apply(replicate(module, used), own_inputs, own_kwargs[:len(used)], used)
    return gather(outputs, output_device)
