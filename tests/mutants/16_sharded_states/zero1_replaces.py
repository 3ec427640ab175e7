"""The parameters get new memory; who holds the old one does not see the new weights.

fails: zero1/weights
shows: A parameter now has different memory
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
        own.grad = reduce_shard(p.grad, group)
    state["adam"].step()
    for p, own in zip(parameters, state["own"]):
        p.data = unshard(own.detach(), p.shape, group)
        own.grad = None
