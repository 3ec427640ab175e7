"""itertools.starmap calls max for each rank.

fails: step/many
shows: More than 20000 lines
points: 18
runs: step
"""
# %% grade_id="step"
from itertools import starmap
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.array(list(starmap(max, zip(free, slow * ready)))), held), 0
    return free.max()
