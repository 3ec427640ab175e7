"""One broadcast for all tensors of a type, and buckets cut by recursion."""
# %% grade_id="broadcast"
# %%px --setup
def broadcast_state(model, group=None):
    tensors = [t.detach() for t in (*model.parameters(), *model.buffers())]
    for dtype in sorted({t.dtype for t in tensors}, key=str):
        mine = [t for t in tensors if t.dtype == dtype]
        flat = torch.cat([t.flatten() for t in mine])
        dist.broadcast(flat, group=group, group_src=0)
        for t, piece in zip(mine, flat.split([t.numel() for t in mine])):
            t.copy_(piece.view_as(t))

# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    left = [p for p in parameters if p.requires_grad]
    buckets = []
    while left:
        bucket = [left.pop()]
        while left and sum(p.numel() * p.element_size() for p in bucket) < bucket_bytes:
            bucket.append(left.pop())
        buckets.append(bucket)
    return buckets
