"""What is no tensor comes from the first replica.

fails: gather/nested
shows: A Python number cannot be gathered
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
        return {key: gather([one[key] for one in outputs], device) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(gather(list(items), device) for items in zip(*outputs))
    return first
