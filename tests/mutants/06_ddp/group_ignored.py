"""The all-reduce is that of the world, whatever the group: ranks outside it are waited for.

fails: flight/launch, flight/land, hooks/mean, hooks/overlap
shows: group=group
points: 15
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten() for p in bucket]).detach()
    return flat, dist.all_reduce(flat, async_op=True)


def land(bucket, launched, group=None):
    flat, work = launched
    work.wait()
    flat /= dist.get_world_size(group)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
