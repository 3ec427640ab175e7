"""Every gradient travels in a message of its own: there are no buckets.

fails: flight/launch, hooks/overlap, no-sync/silent
shows: The bucket was sent in pieces
points: 16
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    for p in bucket:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    return [dist.all_reduce(p.grad, group=group, async_op=True) for p in bucket]


def land(bucket, works, group=None):
    for p, work in zip(bucket, works):
        work.wait()
        p.grad /= dist.get_world_size(group)
