"""The gradients are summed, and not divided by the number of ranks.

fails: flight/land, hooks/mean, hooks/unused, no-sync/sum
shows: too large by a factor of 4, because it was summed but not averaged
points: 15
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten() for p in bucket]).detach()
    return flat, dist.all_reduce(flat, group=group, async_op=True)


def land(bucket, launched, group=None):
    flat, work = launched
    work.wait()
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
