"""Only floating-point tensors are broadcast, so a buffer of whole numbers differs.

fails: broadcast/buffers
shows: num_batches_tracked was not broadcast
points: 18
runs: broadcast
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for t in [*model.parameters(), *model.buffers()]:
        if t.is_floating_point():
            dist.broadcast(t.detach(), group=group, group_src=0)
