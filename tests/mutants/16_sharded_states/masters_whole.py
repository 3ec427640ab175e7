"""Each rank keeps the masters of all shards.

fails: masters/states, masters/traffic
shows: none for the other ranks' shards
points: 26
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["masters"] = [p.detach().float().clone() for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= lr * unshard(reduce_shard(p.grad.float(), group), p.shape, group)
        p.detach().copy_(master)
