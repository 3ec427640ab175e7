"""Replicas run one after the other.

fails: forward/outputs
shows: no replica ran in a thread
points: 22
runs: forward
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    pairs = scatter((inputs, kwargs), devices)
    used = devices[:len(pairs)]
    outputs = [r(*a, **k) for r, (a, k) in zip(replicate(module, used), pairs)]
    return gather(outputs, output_device)
