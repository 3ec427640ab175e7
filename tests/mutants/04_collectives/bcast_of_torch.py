"""torch.distributed's own broadcast.

fails: broadcast/once, broadcast/tree
shows: The broadcast of torch.distributed does the work here
points: 15
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    dist.broadcast(x, group=group, group_src=root)
