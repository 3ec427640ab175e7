"""All ranks as slow as the slowest: right for a ring, not where ranks go on at different times.

fails: step/finish
shows: as slow as the slowest
points: 16
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.maximum(free, slow.max() * np.ones(len(slow)) * ready), held), 0
    return free.max()
