"""Both are posted, the receive first: each rank still waits for the one before.

fails: ring/rehearsal
shows: With NCCL it hangs
points: 13
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    works = [dist.irecv(came, group=group, group_src=(me - 1) % size),
             dist.isend(x, group=group, group_dst=(me + 1) % size)]
    for work in works:
        work.wait()
    return came
