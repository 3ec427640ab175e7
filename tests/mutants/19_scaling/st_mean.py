"""All ranks come to an all-reduce at the mean of their times.

fails: step/finish, step/many
shows: waits for the last rank
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            clocks = np.maximum(free, slow * ready)
            free, held = all_reduce(np.full(len(slow), clocks.mean()), held), 0
    return free.max()
