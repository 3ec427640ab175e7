"""The tree always begins at rank 0: the root is forgotten.

fails: broadcast/values
shows: Count ranks from the root
points: 16
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me, reach = dist.get_rank(group), 1
    while reach < p:
        if me < reach and me + reach < p:
            dist.send(x, group=group, group_dst=me + reach)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, group_src=me - reach)
        reach *= 2
