"""Adam by hand, whose count of steps goes up with each parameter.

fails: zero1/weights
shows: count of steps goes up with each parameter
points: 26
"""
# %% grade_id="zero1"
# %%px --setup
def zero1_step(parameters, state: dict, lr: float, eps: float, group=None) -> None:
    parameters = list(parameters)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    for i, p in enumerate(parameters):
        gradient = reduce_shard(p.grad, group)
        m, v = state.get(i, (torch.zeros_like(gradient), torch.zeros_like(gradient)))
        state["steps"] = t = state.get("steps", 0) + 1
        state[i] = m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        step = lr * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)).sqrt() + eps)
        p.detach().copy_(unshard(shard(p, rank, ranks) - step, p.shape, group))
