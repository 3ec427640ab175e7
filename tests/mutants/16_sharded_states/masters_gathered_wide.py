"""The masters are gathered as float32, and rounded then.

fails: masters/traffic
shows: Round them before the all-gather
points: 27
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["masters"] = [shard(p, rank, ranks).float() for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= lr * reduce_shard(p.grad.float(), group)
        p.detach().copy_(unshard(master, p.shape, group).bfloat16())
