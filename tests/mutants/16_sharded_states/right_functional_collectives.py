"""torch's functional collectives; a class of its own in the state; a weak hold on what is small; views of one clone."""
# %% grade_id="shards"
# %%px --setup
import torch.distributed._functional_collectives as functional


def shard(tensor, rank, ranks):
    numbers = tensor.detach().flatten().tolist()
    size = -(-len(numbers) // ranks)
    own = numbers[rank * size:(rank + 1) * size]
    return torch.tensor(own + [0.0] * (size - len(own)), dtype=tensor.dtype, device=tensor.device)


def unshard(own, shape, group=None):
    whole = functional.all_gather_single(own, 0, group or dist.group.WORLD)
    return functional.wait_tensor(whole)[:math.prod(shape)].view(*shape)


def reduce_shard(tensor, group=None):
    ranks = dist.get_world_size(group)
    whole = pad(tensor.detach().flatten(), (0, -tensor.numel() % ranks))
    own = functional.reduce_scatter_single(whole, "sum", 0, group or dist.group.WORLD)
    return functional.wait_tensor(own) / ranks
# %% grade_id="zero1"
# %%px --setup
class Mine:
    def __init__(self, p, rank, ranks, lr, eps):
        self.own = shard(p, rank, ranks).requires_grad_()
        self.adam = torch.optim.Adam([self.own], lr, eps=eps, foreach=False)

    def step(self, gradient):
        self.own.grad = gradient
        self.adam.step()
        return self.own.detach()


def zero1_step(parameters, state, lr, eps, group=None):
    for i, p in enumerate(parameters):
        if i not in state:
            state[i] = Mine(p, dist.get_rank(group), dist.get_world_size(group), lr, eps)
        p.data[...] = unshard(state[i].step(reduce_shard(p.grad, group)), p.shape, group)
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    places = {p: i for i, p in enumerate(parameters)}
    found = {}

    def cut(p):
        gradient, p.grad = p.grad, None
        found[places[p]] = reduce_shard(gradient, group)

    hooks = []
    for p in parameters:
        hooks.append(p.register_post_accumulate_grad_hook(cut))
    torch.autograd.backward([loss])
    [hook.remove() for hook in hooks]
    return [found[i] for i in sorted(found)]
# %% grade_id="gather"
# %%px --setup
class GatheredLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *args):
        ctx.args = args
        x, own, shape, group = args
        return torch.einsum("ri,oi->ro", x, unshard(own, shape, group))

    @staticmethod
    def backward(ctx, gradient):
        x, own, shape, group = ctx.args
        of_own = reduce_shard(gradient.T @ x, group)
        return gradient @ unshard(own, shape, group), of_own, None, None
