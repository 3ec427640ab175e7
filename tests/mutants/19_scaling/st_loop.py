"""Right, with a loop over the ranks.

fails: step/many
shows: More than 20000 lines
points: 18
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = [0.0] * len(slow), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            clocks = np.array([max(free[r], slow[r] * ready) for r in range(len(slow))])
            free, held = all_reduce(clocks, held), 0
    return max(free)
