"""p rounds in place of p - 1.

fails: reduce-scatter/ring
shows: more messages than rounds, since a ring of 5 ranks needs p - 1
points: 16
runs: reduce-scatter
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p):
        mine = chunks[(me - 2 - s) % p]
        work = dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(mine)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        mine += came
