"""The sum over a group is divided by the size of the world.

fails: flight/land, hooks/mean
shows: Divide it by the size of the group, which is 3 here
points: 17
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten() for p in bucket]).detach()
    return flat, dist.all_reduce(flat, group=group, async_op=True)


def land(bucket, launched, group=None):
    flat, work = launched
    work.wait()
    flat /= dist.get_world_size()
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
