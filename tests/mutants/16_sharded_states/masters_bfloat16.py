"""The master is bfloat16 like the parameters.

fails: masters/moves, masters/states
shows: Steps have vanished
points: 26
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["masters"] = [shard(p, rank, ranks) for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= (lr * reduce_shard(p.grad.float(), group)).bfloat16()
        p.detach().copy_(unshard(master.bfloat16(), p.shape, group))
