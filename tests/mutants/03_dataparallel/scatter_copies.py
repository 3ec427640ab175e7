"""What is no tensor is copied for each replica.

fails: scatter/nested
shows: as the same object, but you have made copies
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [copy.deepcopy(value) for _ in devices]
