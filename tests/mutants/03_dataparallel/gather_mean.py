"""Losses are averaged on the way: right for replicas with equally many rows only, and not what the caller asked for.

fails: gather/scalars, gather/gradient
shows: The numbers were averaged
points: 21
runs: gather
"""
# %% grade_id="gather"
def gather(outputs, device):
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        parts = [one.to(device) for one in outputs]
        return torch.cat(parts) if first.dim() else torch.stack(parts).mean()
    if first is None:
        return None
    if isinstance(first, dict):
        if any(one.keys() != first.keys() for one in outputs):
            raise ValueError("different keys")
        return {key: gather([one[key] for one in outputs], device) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    raise TypeError("not a tensor")
