"""Collectives of lists; all parameters as one long vector, Adam by hand after an all-reduce; shards by index; a master and gradients as one vector each."""
# %% grade_id="memory"
def memory(layers, ranks, stage, weight=2, gradient=2, states=12):
    shards = [math.ceil(size / ranks) for size in layers]
    total = sum(shards if stage > 2 else layers) * weight
    total += sum(shards if stage > 1 else layers) * gradient + sum(shards if stage else layers) * states
    largest = max(shards) * ranks
    return total + (largest * gradient if stage > 1 else 0) + (largest * weight if stage > 2 else 0)


def most_layers(size, device_bytes, ranks, stage, weight=2, gradient=2, states=12):
    count = 0
    while memory([size] * (count + 1), ranks, stage, weight, gradient, states) <= device_bytes:
        count += 1
    return count


import math
# %% grade_id="shards"
# %%px --setup
def shard(tensor, rank, ranks):
    size = (tensor.numel() + ranks - 1) // ranks
    own = torch.zeros(size, dtype=tensor.dtype, device=tensor.device)
    mine = tensor.detach().reshape(-1)[rank * size:(rank + 1) * size]
    own[:mine.numel()] = mine
    return own


def unshard(own, shape, group=None):
    pieces = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(pieces, own.contiguous(), group=group)
    return torch.cat(pieces)[:torch.Size(shape).numel()].reshape(shape)


def reduce_shard(tensor, group=None):
    ranks = dist.get_world_size(group)
    pieces = [shard(tensor, rank, ranks) / ranks for rank in range(ranks)]
    own = torch.empty_like(pieces[0])
    dist.reduce_scatter(own, pieces, group=group)
    return own
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state, lr, eps, group=None):
    parameters = list(parameters)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    gradients = torch.cat([p.grad.reshape(-1) for p in parameters])
    dist.all_reduce(gradients, group=group)
    gradient = shard(gradients / ranks, rank, ranks)
    own = shard(torch.cat([p.detach().reshape(-1) for p in parameters]), rank, ranks)
    if not state:
        state.update(m=torch.zeros_like(own), v=torch.zeros_like(own), t=0)
    state["t"] += 1
    state["m"].lerp_(gradient, 0.1)
    state["v"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    m, v = state["m"] / (1 - 0.9 ** state["t"]), state["v"] / (1 - 0.999 ** state["t"])
    own -= lr * m / (v.sqrt() + eps)
    whole = unshard(own, gradients.shape, group)
    with torch.no_grad():
        for p, new in zip(parameters, whole.split([p.numel() for p in parameters])):
            p.copy_(new.view_as(p))
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state, lr, group=None):
    parameters = list(parameters)
    if "sgd" not in state:
        flat = torch.cat([p.detach().flatten() for p in parameters]).float()
        state["sgd"] = torch.optim.SGD([nn.Parameter(shard(flat, dist.get_rank(group), dist.get_world_size(group)))], lr=lr)
    master = state["sgd"].param_groups[0]["params"][0]
    master.grad = reduce_shard(torch.cat([p.grad.flatten() for p in parameters]).float(), group)
    state["sgd"].step()
    master.grad = None
    whole = unshard(master.detach().to(torch.bfloat16), (sum(p.numel() for p in parameters),), group)
    start = 0
    for p in parameters:
        p.data.copy_(whole[start:start + p.numel()].view_as(p))
        start += p.numel()
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards, sizes, max_norm, group=None):
    rank = dist.get_rank(group)
    real = [own[:min(len(own), max(0, size - rank * len(own)))] for own, size in zip(shards, sizes)]
    squares = torch.stack([one.pow(2).sum() for one in real]).sum()
    dist.all_reduce(squares, group=group)
    norm = squares.sqrt()
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for own in shards:
        own.mul_(factor)
    return norm
