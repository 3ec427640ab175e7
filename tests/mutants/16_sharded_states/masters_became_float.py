"""The parameters get float32: who computes with them does so in float32 from now on.

fails: masters/moves
shows: they must stay bfloat16
points: 27
"""
# %% grade_id="masters"
# %%px --setup
def mixed_step(parameters, state, lr, group=None):
    parameters = list(parameters)
    if not state:
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        state["masters"] = [shard(p, rank, ranks).float() for p in parameters]
    for p, master in zip(parameters, state["masters"]):
        master -= lr * reduce_shard(p.grad.float(), group)
        new = unshard(master.bfloat16(), p.shape, group).float()
        p.grad = None
        p.data = new
