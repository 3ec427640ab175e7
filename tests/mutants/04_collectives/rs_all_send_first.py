"""send before recv on every rank: a deadlock.

fails: reduce-scatter/values, reduce-scatter/ring
shows: If every rank first sends and then receives, no rank receives
points: 14
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        came = torch.empty_like(mine)
        dist.send(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        mine += came
