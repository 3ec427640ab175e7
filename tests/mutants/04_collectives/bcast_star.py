"""The root sends to everyone itself.

fails: broadcast/tree
shows: In a tree, every rank that has x helps to send
points: 16
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    if dist.get_rank(group) == root:
        for peer in range(p):
            if peer != root:
                dist.send(x, group=group, group_dst=peer)
    else:
        dist.recv(x, group=group, group_src=root)
