"""A list of words is cut like the rows of a tensor.

fails: scatter/nested
shows: A list of words is not a tensor
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        rows = -(-len(value) // len(devices))
        return [value[i:i + rows] for i in range(0, len(value), rows)]
    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*(scatter(one, devices) for one in value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*(scatter(one, devices) for one in value.values()))]
    return [value] * len(devices)
