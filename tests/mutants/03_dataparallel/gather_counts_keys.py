"""Looks how many keys the dicts have, and not which.

fails: gather/nested
shows: If the replicas' dicts have different keys, raise a ValueError
points: 22
runs: gather
"""
# %% grade_id="gather"
def gather(outputs, device):
    first = outputs[0]
    if isinstance(first, torch.Tensor):
        return (torch.cat if first.dim() else torch.stack)([one.to(device) for one in outputs])
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(one) != len(first) for one in outputs):
            raise ValueError("the replicas' dicts have different keys")
        return {key: gather([one[key] for one in outputs], device) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    raise TypeError(f"cannot gather {type(first).__name__}: return tensors")
