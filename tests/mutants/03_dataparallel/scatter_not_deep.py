"""Only what lies at the top of a tuple or a dict is cut.

fails: scatter/nested, scatter/devices
shows: A container inside a container goes to every replica as a whole
points: 20
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    def cut(one):
        if isinstance(one, torch.Tensor):
            return [piece.to(device) for piece, device in zip(one.chunk(len(devices)), devices)]
        return [one] * len(devices)

    if isinstance(value, (tuple, list)) and value:
        return [type(value)(items) for items in zip(*map(cut, value))]
    if isinstance(value, dict) and value:
        return [dict(zip(value, items)) for items in zip(*map(cut, value.values()))]
    return cut(value)
