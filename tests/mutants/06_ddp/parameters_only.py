"""Parameters are broadcast, buffers are forgotten: batch norm goes on with other statistics on every rank.

fails: broadcast/buffers, hooks/mean, no-sync/sum
shows: 3.running_mean was not broadcast
points: 16
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), group=group, group_src=0)
