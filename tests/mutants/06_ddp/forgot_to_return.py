"""make_buckets cuts, and does not return what it has cut.

fails: buckets/cut, hooks/mean, hooks/overlap, hooks/unused, no-sync/silent, no-sync/sum
shows: TypeError: 'NoneType' object is not iterable
points: 13
"""
# %% grade_id="buckets"
# %%px --setup
def make_buckets(parameters, bucket_bytes):
    buckets, held = [], 0
    for parameter in reversed([p for p in parameters if p.requires_grad]):
        if not buckets or held >= bucket_bytes:
            buckets.append([])
            held = 0
        buckets[-1].append(parameter)
        held += parameter.numel() * parameter.element_size()
