"""The devices are taken from the end: other statistics stay.

fails: forward/statistics
shows: These are the last replica's statistics
points: 22
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    pairs = scatter((inputs, kwargs), devices)[::-1]
    used = devices[:len(pairs)]
    outputs = parallel_apply(replicate(module, used), [pair[0] for pair in pairs], [pair[1] for pair in pairs], used)
    return gather(outputs[::-1], output_device)
