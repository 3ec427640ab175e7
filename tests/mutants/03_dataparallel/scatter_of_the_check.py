"""The check's own cut is imported.

fails: scatter/rows, scatter/nested, scatter/devices, scatter/gradient
shows: the package's own answer, which is closed here
points: 18
runs: scatter
"""
# %% grade_id="scatter"
from manyhands.checks.torch_dataparallel.with_torch import cut
def scatter(value, devices):
    def move(one, device):
        if isinstance(one, torch.Tensor): return one.to(device)
        if isinstance(one, (tuple, list)): return type(one)(move(x, device) for x in one)
        if isinstance(one, dict): return {k: move(v, device) for k, v in one.items()}
        return one
    return [move(one, device) for one, device in zip(cut(value, len(devices)), devices)]
