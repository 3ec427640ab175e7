"""Numbers without dimensions are joined like rows.

fails: gather/scalars, gather/gradient
shows: stack such numbers into a vector
points: 21
runs: gather
"""
# %% grade_id="gather"
def gather(outputs, device):
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return torch.cat([one.to(device) for one in outputs])
    if first is None:
        return None
    if isinstance(first, dict):
        if any(one.keys() != first.keys() for one in outputs):
            raise ValueError("different keys")
        return {key: gather([one[key] for one in outputs], device) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    raise TypeError("not a tensor")
