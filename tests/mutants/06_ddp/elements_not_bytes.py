"""The size of a bucket is counted in elements.

fails: buckets/cut, hooks/overlap, no-sync/silent
shows: a float32 has 4 bytes
points: 16
"""
# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    buckets, held = [], 0
    for parameter in reversed(list(parameters)):
        if not parameter.requires_grad:
            continue
        if not buckets or held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel()
    return buckets
