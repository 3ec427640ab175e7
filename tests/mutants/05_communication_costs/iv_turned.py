"""The low ends of both, then the high ends of both.

fails: interval/covers, interval/width
shows: The pairs are transposed
points: 15
"""
# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    draw = np.random.default_rng(0)
    links = [fit(n_bytes, [draw.choice(one, len(one)) for one in times_s]) for _ in range(200)]
    return tuple(np.quantile(links, [(1 - level) / 2, (1 + level) / 2], axis=0))
