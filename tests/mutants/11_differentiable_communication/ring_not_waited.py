"""The works are not waited for.

fails: ring/values, ring/rehearsal
shows: call wait() on each work
points: 12
runs: ring
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    both = [dist.P2POp(dist.isend, x, group=group, group_peer=(me + 1) % size),
            dist.P2POp(dist.irecv, came, group=group, group_peer=(me - 1) % size)]
    dist.batch_isend_irecv(both)
    return came
