"""The all-reduce is made in land, after backward.

fails: flight/launch
shows: and land has sent the bucket
points: 18
runs: flight
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    return torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in bucket])


def land(bucket, flat, group=None):
    dist.all_reduce(flat, group=group)
    flat /= dist.get_world_size(group)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
