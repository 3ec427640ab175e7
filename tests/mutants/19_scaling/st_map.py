"""map calls max for each rank.

fails: step/many
shows: More than 20000 lines
points: 18
runs: step
"""
# %% grade_id="step"
def step_s(slow: np.ndarray, ready_s: list[float], sizes: list[int], bucket_bytes: float,
           all_reduce) -> float:
    """Seconds from the start of the step until the last rank has the last sum."""
    free, held = np.zeros(len(slow)), 0
    for i, (ready, size) in enumerate(zip(ready_s, sizes)):
        held += size
        if held >= bucket_bytes or i == len(sizes) - 1:
            free, held = all_reduce(np.array(list(map(max, free.tolist(), (slow * ready).tolist()))), held), 0
    return free.max()
