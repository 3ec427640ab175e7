"""As many replicas as devices, even where there are fewer pieces.

fails: forward/outputs
shows: the number of pieces decides
points: 22
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    pairs = scatter((inputs, kwargs), devices)
    outputs = parallel_apply(replicate(module, devices), [pair[0] for pair in pairs], [pair[1] for pair in pairs], devices)
    return gather(outputs, output_device)
