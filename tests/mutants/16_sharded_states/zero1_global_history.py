"""A global list keeps the gathered weights of each step.

fails: zero1/states
shows: Something other than `state`, for example a global list
points: 27
runs: zero1
"""
# %% grade_id="zero1"
# %%px --setup
HISTORY = []
def zero1_step(parameters, state, lr, eps, group=None):
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["own"] = [nn.Parameter(shard(p, rank, ranks)) for p in parameters]
        state["adam"] = torch.optim.Adam(state["own"], lr=lr, eps=eps)
    for p, own in zip(parameters, state["own"]):
        own.grad = reduce_shard(p.grad, group)
    state["adam"].step()
    for p, own in zip(parameters, state["own"]):
        HISTORY.append(unshard(own.detach(), p.shape, group))
        p.detach().copy_(HISTORY[-1])
