"""Buckets that never hold more than the limit.

fails: fusion/finish
shows: the tensor that fills it up still goes with it
points: 15
"""
# %% grade_id="fusion"
def finish_s(ready_s, n_bytes, bucket_bytes, all_reduce_s):
    free_s, held, last = 0.0, 0, 0.0
    for ready, size in zip(ready_s, n_bytes):
        if held and held + size > bucket_bytes:
            free_s, held = max(free_s, last) + all_reduce_s(held), 0
        held, last = held + size, ready
    return max(free_s, last) + all_reduce_s(held)


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
