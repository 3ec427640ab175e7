"""n // k rows for each device: the rest is lost.

fails: scatter/rows, scatter/nested, scatter/gradient
shows: Rows are lost
points: 19
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        rows = len(value) // len(devices)
        return [value[i * rows:(i + 1) * rows].to(device) for i, device in enumerate(devices) if rows]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
