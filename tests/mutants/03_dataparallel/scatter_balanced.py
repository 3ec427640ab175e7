"""Shared out as evenly as possible, as unit 01 does; empty pieces are left out.

fails: scatter/rows, scatter/nested
shows: were distributed as evenly as possible, whereas torch.chunk rounds up
points: 20
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.tensor_split(len(devices)), devices) if len(piece)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
