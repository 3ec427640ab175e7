"""The masters are float64: twice the memory.

fails: masters/states
shows: four for each of its parameters
points: 27
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    if not state:
        state["masters"] = [shard(p, rank, ranks).double() for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= lr * reduce_shard(p.grad.float(), group)
        p.detach().copy_(unshard(master.bfloat16(), p.shape, group))
