"""One clock for all ranks: the largest after each all-reduce.

fails: step/finish
shows: One clock represents all ranks
points: 16
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = 0.0, 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.maximum(free, slow * ready), held).max(), 0
    return free
