"""src=0 is rank 0 of the world, which is not in every group.

fails: broadcast/parameters, broadcast/buffers, hooks/mean, hooks/overlap
shows: To name the first rank of a group, use group_src=0
points: 15
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=0, group=group)
