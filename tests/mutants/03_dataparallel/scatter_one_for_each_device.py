"""The list is as long as that of the devices, and there are fewer pieces.

fails: scatter/nested
shows: the number of pieces decides how many replicas there are
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)):
        parts = [scatter(one, devices) for one in value]
        return [type(value)(part[i] for part in parts) for i in range(len(devices))]
    if isinstance(value, dict):
        parts = {key: scatter(one, devices) for key, one in value.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(len(devices))]
    return [value] * len(devices)
