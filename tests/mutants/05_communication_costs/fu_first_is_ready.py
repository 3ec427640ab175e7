"""A bucket leaves when its first gradient is ready.

fails: fusion/finish, fusion/best
shows: when its *last* gradient is ready
points: 13
"""
# %% grade_id="fusion"
def finish_s(ready_s, n_bytes, bucket_bytes, all_reduce_s):
    free_s, held, first = 0.0, 0, None
    for i, (ready, size) in enumerate(zip(ready_s, n_bytes)):
        first, held = ready if first is None else first, held + size
        if held >= bucket_bytes or i == len(n_bytes) - 1:
            free_s, held, first = max(free_s, first) + all_reduce_s(held), 0, None
    return free_s


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
