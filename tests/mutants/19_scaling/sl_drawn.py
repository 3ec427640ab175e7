"""Drawn a thousand times: near, but not the mean.

fails: slowest/slowest
shows: with a probability of (i/n)^p
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    return np.random.default_rng(0).choice(times_s, (1000, p)).max(1).mean()


def efficiency(base, many):
    return (many[1] / many[0]) / (base[1] / base[0])
