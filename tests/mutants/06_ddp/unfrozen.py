"""Every parameter requires a gradient afterwards, the frozen ones too.

fails: broadcast/parameters
shows: has changed requires_grad of a parameter
points: 18
runs: broadcast
"""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    for p in model.parameters():
        p.requires_grad_(False)
        dist.broadcast(p, group=group, group_src=0)
        p.requires_grad_(True)
    for b in model.buffers():
        dist.broadcast(b, group=group, group_src=0)
