"""dst and src in place of group_dst and group_src: ranks are counted in the world.

fails: broadcast/values, broadcast/once, broadcast/tree
shows: use group_dst and group_src
points: 14
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me, reach = (dist.get_rank(group) - root) % p, 1
    while reach < p:
        if me < reach and me + reach < p:
            dist.send(x, group=group, dst=(me + reach + root) % p)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, src=(me - reach + root) % p)
        reach *= 2
