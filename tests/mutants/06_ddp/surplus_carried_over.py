"""What a bucket holds beyond bucket_bytes is counted for the next one.

fails: buckets/cut
shows: The buckets are cut at different places
points: 18
runs: buckets
"""
# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    buckets, held = [], 0
    for p in reversed(list(parameters)):
        if not p.requires_grad:
            continue
        if not buckets or held >= bucket_bytes:
            buckets.append([]); held = max(0, held - bucket_bytes)
        buckets[-1].append(p); held += p.numel() * p.element_size()
    return buckets
