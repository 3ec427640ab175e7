"""The ring as the lab gives it: it runs on gloo, and NCCL would hang.

fails: ring/rehearsal
shows: With NCCL it hangs
shows: batch_isend_irecv
points: 13
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    work = dist.isend(x, group=group, group_dst=(me + 1) % size)
    dist.recv(came, group=group, group_src=(me - 1) % size)
    work.wait()
    return came
