"""Each gradient by itself: it leaves as early as possible.

fails: fusion/best
shows: With a message for each gradient
points: 15
"""
# %% grade_id="fusion"
def finish_s(ready_s, n_bytes, bucket_bytes, all_reduce_s):
    free_s, held = 0.0, 0
    for i, (ready, size) in enumerate(zip(ready_s, n_bytes)):
        held += size
        if held >= bucket_bytes or i == len(n_bytes) - 1:
            free_s, held = max(free_s, ready) + all_reduce_s(held), 0
    return free_s


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    return 0
