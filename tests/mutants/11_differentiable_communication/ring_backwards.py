"""The ring goes the wrong way round.

fails: ring/values, ring/rehearsal
shows: This is what the next rank has
shows: the ring goes the wrong way round
points: 12
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    both = [dist.P2POp(dist.isend, x, group=group, group_peer=(me - 1) % size),
            dist.P2POp(dist.irecv, came, group=group, group_peer=(me + 1) % size)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return came
