"""Every device gets a piece, some an empty one.

fails: scatter/rows, scatter/nested
shows: a replica without rows is not called at all
points: 20
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        pieces = list(value.chunk(len(devices)))
        pieces += [value[:0]] * (len(devices) - len(pieces))
        return [piece.to(device) for piece, device in zip(pieces, devices)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
