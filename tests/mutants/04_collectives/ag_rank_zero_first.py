"""Rank 0 sends first, the others receive first.

fails: all-gather/ring
shows: because a rank receives before it sends
points: 16
runs: all-gather
"""
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        if me == 0:
            dist.send(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
            dist.recv(chunks[(me - 1 - s) % p], group=group, group_src=(me - 1) % p)
        else:
            dist.recv(chunks[(me - 1 - s) % p], group=group, group_src=(me - 1) % p)
            dist.send(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
