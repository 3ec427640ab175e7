"""Gradients are averaged, and every rank runs Adam on all parameters.

fails: zero1/states
shows: The states of the other shards belong to the other ranks
points: 27
"""
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    parameters = list(parameters)
    if not state:
        state["adam"] = torch.optim.Adam(parameters, lr=lr, eps=eps)
    for p in parameters:
        p.grad /= dist.get_world_size(group)
        dist.all_reduce(p.grad, group=group)
    state["adam"].step()
