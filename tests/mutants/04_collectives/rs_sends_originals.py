"""What is sent is each rank's own chunk as it was, not the one that was just added to.

fails: reduce-scatter/values
shows: Only 2 of 5 ranks are in the sum
points: 15
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    originals = [chunk.clone() for chunk in chunks]
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        work = dist.isend(originals[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
