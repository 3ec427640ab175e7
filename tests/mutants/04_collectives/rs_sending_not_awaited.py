"""The work of a sending is kept until the next round, and nobody waits for it.

fails: reduce-scatter/values, reduce-scatter/ring
shows: a message whose work handle has been dropped may never leave
shows: began to send with isend, and did not wait for
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
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        mine += came
