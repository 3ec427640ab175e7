"""Values of dicts are matched in the order they come in.

fails: gather/nested
shows: go by key
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
        if any(one.keys() != first.keys() for one in outputs):
            raise ValueError("different keys")
        return dict(zip(first, (gather(list(values), device) for values in zip(*(one.values() for one in outputs)))))
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    raise TypeError("not a tensor")
