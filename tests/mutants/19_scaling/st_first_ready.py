"""A bucket is sent when its first gradient is ready.

fails: step/finish, step/many
shows: has to wait for its last
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held, first = np.zeros(len(slow)), 0, None
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        first = ready if first is None else first
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held, first = all_reduce(np.maximum(free, slow * first), held), 0, None
    return free.max()
