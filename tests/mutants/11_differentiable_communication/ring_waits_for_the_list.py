"""The list that batch_isend_irecv returns is waited for: it raises, and the messages are under way.

fails: ring/values, ring/rehearsal
shows: batch_isend_irecv returns a list of works
leaves: a send and a receive, begun and never waited for
points: 12
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    both = [dist.P2POp(dist.isend, x, group=group, group_peer=(me + 1) % size),
            dist.P2POp(dist.irecv, came, group=group, group_peer=(me - 1) % size)]
    work = dist.batch_isend_irecv(both)
    work.wait()
    return came
