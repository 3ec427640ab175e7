"""The rank's own numbers are added at the end, though they were in the chunk from the beginning.

fails: reduce-scatter/values
shows: own numbers are in the sum twice
points: 15
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    own = chunks[me].clone()
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        work = dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
    chunks[me] += own
