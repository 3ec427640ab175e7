"""x is handed on from rank to rank.

fails: broadcast/tree
shows: the number of ranks that have x doubles
points: 16
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me = (dist.get_rank(group) - root) % p
    if me > 0:
        dist.recv(x, group=group, group_src=(me - 1 + root) % p)
    if me < p - 1:
        dist.send(x, group=group, group_dst=(me + 1 + root) % p)
