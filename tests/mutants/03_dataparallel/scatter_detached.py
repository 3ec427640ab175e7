"""The pieces are cut off from the graph.

fails: scatter/gradient
shows: the pieces are cut off from the tensor
points: 22
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.detach().to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
