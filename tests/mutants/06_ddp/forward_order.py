"""Buckets begin with the first layer, whose gradient comes last.

fails: buckets/cut, hooks/overlap
shows: Backward reaches the last layer first
points: 17
"""
# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    buckets, held = [], 0
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        if not buckets or held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
    return buckets
