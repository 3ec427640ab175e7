"""A bucket that holds just bucket_bytes waits for one gradient more.

fails: step/finish, step/many
shows: is full, so use >= and not >
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held > bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.maximum(free, slow * ready), held), 0
    return free.max()
