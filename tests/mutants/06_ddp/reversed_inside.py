"""The buckets are cut from the last parameter, and each is turned round at the end.

fails: buckets/cut
shows: in a different order. Inside a bucket, too
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
        held += parameter.numel() * parameter.element_size()
    return [bucket[::-1] for bucket in buckets]
