"""The mean gradients are put together on each rank before they are cut again.

fails: zero1/traffic
shows: Is something sent more than once
points: 27
"""
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    """One step of Adam, with betas of 0.9 and 0.999; the weights are new in place."""
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["own"] = [nn.Parameter(shard(p, rank, ranks)) for p in parameters]
        state["adam"] = torch.optim.Adam(state["own"], lr=lr, eps=eps)
    for p, own in zip(parameters, state["own"]):
        p.grad = unshard(reduce_shard(p.grad, group), p.shape, group)
        dist.all_reduce(p.grad.div_(dist.get_world_size(group)), group=group)
        own.grad = shard(p.grad, dist.get_rank(group), dist.get_world_size(group))
    state["adam"].step()
    for p, own in zip(parameters, state["own"]):
        p.detach().copy_(unshard(own.detach(), p.shape, group))
        own.grad = None
