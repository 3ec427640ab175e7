"""AdamW, which has a weight decay if nobody says otherwise.

fails: zero1/weights
shows: These are not the weights that a single process computes
points: 26
"""
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    """One step of Adam, with betas of 0.9 and 0.999; the weights are new in place."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    if not state:
        state["own"] = [shard(p, rank, ranks) for p in parameters]
        state["adam"] = torch.optim.AdamW(state["own"], lr=lr, eps=eps)
    for own, p in zip(state["own"], parameters):
        own.grad = reduce_shard(p.grad, group)
    state["adam"].step()
    for own, p in zip(state["own"], parameters):
        p.detach().copy_(unshard(own, p.shape, group))
