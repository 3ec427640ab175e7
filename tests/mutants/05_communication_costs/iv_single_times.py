"""One time of each size is drawn, not as many as there are.

fails: interval/width
shows: how much *single* times scatter
points: 16
"""
# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    draw = np.random.default_rng(0)
    links = [fit(n_bytes, [draw.choice(one, 1) for one in times_s]) for _ in range(200)]
    low, high = np.quantile(links, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return (low[0], high[0]), (low[1], high[1])
