"""Parameters are averaged over the ranks in place of being broadcast.

fails: broadcast/parameters, broadcast/buffers, hooks/mean, hooks/unused, no-sync/sum
shows: is the mean of all ranks
points: 14
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for parameter in model.parameters():
        dist.all_reduce(parameter.detach(), group=group)
        parameter.detach().div_(dist.get_world_size(group))
    for buffer in model.buffers():
        dist.broadcast(buffer, group=group, group_src=0)
