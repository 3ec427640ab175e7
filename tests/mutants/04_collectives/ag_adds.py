"""The second half adds, like the first.

fails: all-gather/values
shows: because an all-gather adds nothing up
points: 16
runs: all-gather
"""
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        into = chunks[(me - 1 - s) % p]
        work = dist.isend(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(into)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        into += came
