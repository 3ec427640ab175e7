"""Right values by the wrong algorithm: everyone gets every x whole, and sums.

fails: all-reduce/bytes, all-reduce/ring
shows: gathers everything, then sums
shows: a rank sends only to the next rank
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    own, others = x.clone(), [r for r in range(p) if r != me]
    works = [dist.isend(own, group=group, group_dst=r) for r in others]
    for r in others:
        came = torch.empty_like(x)
        dist.recv(came, group=group, group_src=r)
        x += came
    for work in works:
        work.wait()
