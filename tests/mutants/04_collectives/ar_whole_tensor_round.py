"""A ring, but the whole tensor goes round it.

fails: all-reduce/bytes, all-reduce/ring
shows: gathers everything, then sums
shows: fewer messages than rounds
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    going = x.clone()
    for s in range(p - 1):
        came = torch.empty_like(x)
        work = dist.isend(going, group=group, group_dst=(me + 1) % p)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        x += came
        going = came
