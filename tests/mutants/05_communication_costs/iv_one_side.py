"""A tenth is left out at each end, not at both together.

fails: interval/width
shows: at both ends together
points: 16
"""
# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    draw = np.random.default_rng(0)
    links = [fit(n_bytes, [draw.choice(one, len(one)) for one in times_s]) for _ in range(200)]
    low, high = np.quantile(links, [1 - level, level], axis=0)
    return (low[0], high[0]), (low[1], high[1])
