"""lr is rounded to bfloat16.

fails: masters/moves
shows: Is the gradient, its mean, the step or lr rounded to bfloat16 on the way?
points: 27
runs: masters
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
        master -= torch.tensor(lr).bfloat16().float() * reduce_shard(p.grad.float(), group)
        p.detach().copy_(unshard(master.bfloat16(), p.shape, group))
