"""Leaves out 5 % at each end, whatever the level.

fails: interval/width
shows: It must hold the middle 50%
points: 16
"""
# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    draw = np.random.default_rng(0)
    links = [fit(n_bytes, [draw.choice(one, len(one)) for one in times_s]) for _ in range(200)]
    low, high = np.quantile(links, [0.05, 0.95], axis=0)
    return (low[0], high[0]), (low[1], high[1])
