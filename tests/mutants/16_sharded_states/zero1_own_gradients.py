"""Each rank steps with its own gradients: nothing is reduced.

fails: zero1/weights
shows: which were not averaged over the ranks
points: 26
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
        own.grad = shard(p.grad, dist.get_rank(group), dist.get_world_size(group))
    state["adam"].step()
    for p, own in zip(parameters, state["own"]):
        p.detach().copy_(unshard(own.detach(), p.shape, group))
        own.grad = None
