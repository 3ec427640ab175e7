"""The outputs are gathered on the first device, whatever output_device says.

fails: forward/outputs
shows: The result is not on output_device
points: 22
runs: forward
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    pairs = scatter((inputs, kwargs), devices)
    used = devices[:len(pairs)]
    own_inputs, own_kwargs = zip(*pairs)
    return gather(parallel_apply(replicate(module, used), own_inputs, own_kwargs, used), devices[0])
