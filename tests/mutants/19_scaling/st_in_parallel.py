"""Buckets do not wait for the one before.

fails: step/finish, step/many
shows: All buckets travel simultaneously
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    ends, held = [], 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            ends.append(all_reduce(slow * ready, held).max())
            held = 0
    return max(ends)
