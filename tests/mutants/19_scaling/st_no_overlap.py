"""All buckets are sent after the backward pass.

fails: step/finish, step/many
shows: begin after the backward pass
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = slow * ready_s[-1], 0
    for i, size in enumerate(sizes):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(free, held), 0
    return free.max()
