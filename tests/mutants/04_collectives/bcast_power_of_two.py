"""Only as many rounds as fit: log2 p is rounded down, and the last ranks get nothing.

fails: broadcast/values, broadcast/once, broadcast/tree
shows: still has its own numbers
shows: Has every rank got x?
points: 14
"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me = (dist.get_rank(group) - root) % p
    for k in range(p.bit_length() - 1):
        reach = 2**k
        if me < reach:
            dist.send(x, group=group, group_dst=(me + reach + root) % p)
        elif me < 2 * reach:
            dist.recv(x, group=group, group_src=(me - reach + root) % p)
