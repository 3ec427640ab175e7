"""Frozen parameters are left out of the buckets, but their bytes are counted.

fails: buckets/cut
shows: but their bytes were counted
points: 18
runs: buckets
"""
# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    buckets, held = [], 0
    for p in reversed(list(parameters)):
        if not buckets or held >= bucket_bytes:
            buckets.append([]); held = 0
        if p.requires_grad:
            buckets[-1].append(p)
        held += p.numel() * p.element_size()
    return [b for b in buckets if b]
