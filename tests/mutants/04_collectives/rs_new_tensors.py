"""The sums are new tensors in the list; the memory that was cut stays as it was.

fails: reduce-scatter/values
shows: instead of putting a new tensor into the list
points: 15
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        into = (me - 2 - s) % p
        work = dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(chunks[into])
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        chunks[into] = chunks[into] + came
