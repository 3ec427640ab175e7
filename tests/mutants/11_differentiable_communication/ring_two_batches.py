"""A batch for the send, and another one for the receive: they queue one behind the other.

fails: ring/rehearsal
shows: With NCCL it
points: 13
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, group=group, group_peer=(me + 1) % size)])
    works += dist.batch_isend_irecv([dist.P2POp(dist.irecv, came, group=group, group_peer=(me - 1) % size)])
    for work in works:
        work.wait()
    return came
