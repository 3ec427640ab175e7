"""One after the other: rank 0 sends first, all others receive first.

"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    if me == 0:
        dist.send(x, group=group, group_dst=1)
    dist.recv(came, group=group, group_src=(me - 1) % size)
    if me > 0:
        dist.send(x, group=group, group_dst=(me + 1) % size)
    return came
