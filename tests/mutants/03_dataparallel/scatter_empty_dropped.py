"""An empty tuple gives no item, and zip() then ends before the first one.

fails: scatter/nested
shows: An empty container must go to all replicas
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)):
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
