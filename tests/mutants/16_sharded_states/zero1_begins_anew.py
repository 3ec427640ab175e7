"""A new Adam at each step.

fails: zero1/weights, zero1/states
shows: Adam without a memory
points: 25
"""
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    parameters = list(parameters)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    owns = [nn.Parameter(shard(p, rank, ranks)) for p in parameters]
    for p, own in zip(parameters, owns):
        own.grad = reduce_shard(p.grad, group)
    torch.optim.Adam(owns, lr=lr, eps=eps).step()
    for p, own in zip(parameters, owns):
        p.detach().copy_(unshard(own.detach(), p.shape, group))
