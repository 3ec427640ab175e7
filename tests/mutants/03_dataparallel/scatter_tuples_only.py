"""zip makes tuples, and so lists have become tuples.

fails: scatter/nested
shows: The types have changed
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)) and value:
        return list(zip(*(scatter(one, devices) for one in value)))
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
