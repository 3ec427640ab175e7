"""Layers found by bisection; an Adam for each parameter; shards of gradients in one buffer; the gradients of a layer by autograd; SGD of the library; norms by foreach."""
# %% grade_id="memory"
def memory(layers, ranks, stage, weight=2, gradient=2, states=12):
    total = 0.0
    for size in layers:
        own = (size + ranks - 1) // ranks
        for bytes_each, begin in ((weight, 3), (gradient, 2), (states, 1)):
            total += bytes_each * (own if stage >= begin else size)
    largest = (max(layers) + ranks - 1) // ranks * ranks
    return total + largest * ((stage >= 2) * gradient + (stage >= 3) * weight)


def most_layers(size, device_bytes, ranks, stage, weight=2, gradient=2, states=12):
    low, high = 0, 10_000
    while low < high:
        middle = (low + high + 1) // 2
        fits = memory([size] * middle, ranks, stage, weight, gradient, states) <= device_bytes
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state, lr, eps, group=None):
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    for p in parameters:
        if p not in state:
            own = nn.Parameter(shard(p, rank, ranks))
            state[p] = own, torch.optim.Adam([own], lr=lr, eps=eps)
        own, adam = state[p]
        own.grad = reduce_shard(p.grad, group)
        adam.step()
        with torch.no_grad():
            p.copy_(unshard(own.detach(), p.shape, group))
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    ranks = dist.get_world_size(group)
    sizes = [-(-p.numel() // ranks) for p in parameters]
    pieces = loss.new_zeros(sum(sizes)).split(sizes)
    hooks = []

    def cut(piece, gradient):
        piece.copy_(reduce_shard(gradient, group))

    for p, piece in zip(parameters, pieces):
        hooks.append(p.register_hook(partial(cut, piece)))
        hooks.append(p.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None)))
    loss.backward(inputs=list(parameters))
    for hook in hooks:
        hook.remove()
    return list(pieces)
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, own, shape, group=None):
        ctx.save_for_backward(x, own.clone())
        ctx.rest = shape, group
        return nn.functional.linear(x, unshard(own, shape, group))

    @staticmethod
    def backward(ctx, gradient):
        x, own = ctx.saved_tensors
        with torch.enable_grad():
            leaves = x.detach().requires_grad_(), unshard(own, *ctx.rest).requires_grad_()
            y = nn.functional.linear(*leaves)
        of_x, of_weight = torch.autograd.grad(y, leaves, gradient)
        return of_x, reduce_shard(of_weight, ctx.rest[1]), None, None
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state, lr, group=None):
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["own"] = [nn.Parameter(shard(p, rank, ranks).float()) for p in parameters]
        state["sgd"] = torch.optim.SGD(state["own"], lr=lr)
    for own, p in zip(state["own"], parameters):
        own.grad = reduce_shard(p.grad.float(), group)
    state["sgd"].step()
    for own, p in zip(state["own"], parameters):
        p.data.copy_(unshard(own.detach().bfloat16(), p.shape, group))
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards, sizes, max_norm, group=None):
    rank = dist.get_rank(group)
    for own, size in zip(shards, sizes):
        own[max(0, size - rank * len(own)):] = 0
    norm = torch.stack(torch._foreach_norm(shards)).norm() ** 2
    dist.all_reduce(norm, group=group)
    norm = norm.sqrt()
    torch._foreach_mul_(shards, min(1.0, max_norm / norm.item()) if norm else 1.0)
    return norm
