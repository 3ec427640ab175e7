"""Every number is taken to have 4 bytes, whatever its type.

fails: buckets/cut
shows: You counted 4 bytes for each number
points: 18
runs: buckets
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
        held += 4 * parameter.numel()
    return buckets
