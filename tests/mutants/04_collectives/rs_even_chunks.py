"""Room is made for the chunk that goes, and another one comes.

fails: reduce-scatter/values, reduce-scatter/ring
shows: make room for the chunk that arrives
points: 14
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        work = dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(chunks[(me - 1 - s) % p])
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
