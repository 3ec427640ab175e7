"""The sum is made at rank 0, which sends it to all.

fails: all-reduce/bytes, all-reduce/ring
shows: The sum seems to go through one place
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    if me:
        dist.send(x, group=group, group_dst=0)
        dist.recv(x, group=group, group_src=0)
        return
    for r in range(1, p):
        came = torch.empty_like(x)
        dist.recv(came, group=group, group_src=r)
        x += came
    for r in range(1, p):
        dist.send(x, group=group, group_dst=r)
