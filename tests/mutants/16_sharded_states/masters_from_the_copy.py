"""At each step the master begins as the rounded parameter.

fails: masters/moves, masters/states
shows: Steps have vanished
shows: `state` is too small to hold the shard in float32
points: 26
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state: dict, lr: float, group=None) -> None:
    """One step of SGD on a float32 shard; the bfloat16 parameters are new in place."""
    parameters = list(parameters)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    masters = [shard(p, rank, ranks).float() for p in parameters]
    for p, master in zip(parameters, masters):
        master -= lr * reduce_shard(p.grad.float(), group)
        p.detach().copy_(unshard(master.bfloat16(), p.shape, group))
