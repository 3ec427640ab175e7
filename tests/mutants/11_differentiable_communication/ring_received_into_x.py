"""What comes is received into x, which is still to be sent.

fails: ring/values
shows: x itself has changed
points: 13
runs: ring
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = x
    both = [dist.P2POp(dist.isend, x, group=group, group_peer=(me + 1) % size),
            dist.P2POp(dist.irecv, came, group=group, group_peer=(me - 1) % size)]
    for work in dist.batch_isend_irecv(both):
        work.wait()
    return came
