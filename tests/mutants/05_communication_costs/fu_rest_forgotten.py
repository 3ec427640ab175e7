"""The last bucket is not full, and is never sent.

fails: fusion/finish, fusion/best
shows: it must be sent all the same
points: 13
"""
# %% grade_id="fusion"
def finish_s(ready_s, n_bytes, bucket_bytes, all_reduce_s):
    free_s, held = 0.0, 0
    for i, (ready, size) in enumerate(zip(ready_s, n_bytes)):
        held += size
        if held >= bucket_bytes:
            free_s, held = max(free_s, ready) + all_reduce_s(held), 0
    return free_s


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
