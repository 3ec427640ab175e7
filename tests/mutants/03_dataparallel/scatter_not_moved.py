"""The pieces are cut, and stay where they are: on a machine without GPUs nobody would notice.

fails: scatter/devices
shows: piece i belongs on devices[i]
points: 22
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return list(value.chunk(len(devices)))
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
