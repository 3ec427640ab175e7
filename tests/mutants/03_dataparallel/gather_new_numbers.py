"""The vector is made from Python numbers: it has no gradient.

fails: gather/gradient
shows: No gradient arrives through the scalars
points: 22
runs: gather
"""
# %% grade_id="gather"
def gather(outputs, device):
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        if first.dim() == 0:
            return torch.tensor([one.item() for one in outputs], dtype=first.dtype, device=device)
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
