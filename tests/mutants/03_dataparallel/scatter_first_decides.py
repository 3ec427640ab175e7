"""The number of pieces is that of the first item, and the others are repeated.

fails: scatter/nested
shows: with as many rows each as torch.chunk gives them
points: 21
runs: scatter
"""
# %% grade_id="scatter"
def scatter(value, devices):
    if isinstance(value, torch.Tensor):
        return [p.to(d) for p, d in zip(value.chunk(len(devices)), devices)]
    if isinstance(value, (tuple, list)) and value:
        parts = [scatter(one, devices) for one in value]
        n = len(parts[0])
        return [type(value)(p[i % len(p)] for p in parts) for i in range(n)]
    if isinstance(value, dict) and value:
        parts = {k: scatter(v, devices) for k, v in value.items()}
        return [{k: p[i] for k, p in parts.items()} for i in range(min(map(len, parts.values())))]
    return [value] * len(devices)
