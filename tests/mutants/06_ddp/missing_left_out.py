"""A parameter without a gradient is left out of the flat tensor, so the sizes differ between the ranks.

fails: flight/launch, flight/land
shows: Is a parameter left out where its gradient is None?
points: 17
runs: flight
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([p.grad.flatten() for p in bucket if p.grad is not None] or [torch.zeros(1)])
    return flat, dist.all_reduce(flat, group=group, async_op=True)


def land(bucket, launched, group=None):
    flat, work = launched
    work.wait()
    flat /= dist.get_world_size(group)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        p.grad.copy_(piece.view_as(p))
