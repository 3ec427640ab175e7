"""As in the tutorial: rank r ends with chunk r + 1.

fails: reduce-scatter/values
shows: as if every chunk number were off by the same
points: 15
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        mine = chunks[(me - 1 - s) % p]
        work = dist.isend(chunks[(me - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
