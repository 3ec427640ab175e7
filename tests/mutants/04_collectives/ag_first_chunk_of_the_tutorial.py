"""The first round sends chunk me + 1, as the tutorial's ring does, whose first half ends elsewhere.

fails: all-gather/values
shows: own chunk, chunk
shows: has been overwritten
points: 16
runs: all-gather
"""
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        work = dist.isend(chunks[(me + 1 - s) % p], group=group, group_dst=(me + 1) % p)
        dist.recv(chunks[(me - s) % p], group=group, group_src=(me - 1) % p)
        work.wait()
