"""The all-reduce is not asynchronous: backward waits in every hook.

fails: flight/launch, hooks/overlap
shows: give all_reduce async_op=True
shows: Backward did not end until rank 3 had begun its own
points: 17
"""
# %% grade_id="flight"
# %%px --setup
def launch(bucket, group=None):
    flat = torch.cat([(p.new_zeros(p.shape) if p.grad is None else p.grad).flatten() for p in bucket]).detach()
    dist.all_reduce(flat, group=group)
    return flat


def land(bucket, flat, group=None):
    flat /= dist.get_world_size(group)
    for p, piece in zip(bucket, flat.split([p.numel() for p in bucket])):
        p.grad = piece.view_as(p)
