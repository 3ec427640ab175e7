"""A collective in place of messages.

fails: ring/rehearsal
shows: not the messages of a ring
points: 13
"""
# %% grade_id="ring"
# %%px --setup
def ring_shift(x, group=None):
    me, size = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(x)
    pieces = [torch.empty_like(x) for _ in range(size)]
    dist.all_gather(pieces, x.contiguous(), group=group)
    return pieces[me - 1]
