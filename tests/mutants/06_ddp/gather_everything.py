"""Right values by the wrong algorithm: everyone gathers all gradients, then sums.

fails: flight/launch, hooks/overlap, no-sync/silent
shows: and no gathering
points: 16
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten() for p in bucket]).detach()
    gathered = [torch.empty_like(flat) for _ in range(dist.get_world_size(group))]
    return gathered, dist.all_gather(gathered, flat, group=group, async_op=True)


def land(bucket, launched, group=None):
    gathered, work = launched
    work.wait()
    flat = torch.stack(gathered).mean(0)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
