"""What isend returns is kept until the next round, and nobody waits for it.

fails: all-gather/values, all-gather/ring
shows: a message whose work handle has been dropped may never leave
shows: began to send with isend, and did not wait for
points: 15
runs: all-gather
"""
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        work = dist.isend(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
        dist.recv(chunks[(me - 1 - s) % p], group=group, group_src=(me - 1) % p)
