"""The base is taken for one rank.

fails: slowest/efficiency
shows: The base has more ranks than one
points: 18
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    n = len(times_s)
    return np.diff((np.arange(n + 1) / n) ** p) @ np.sort(times_s)


def efficiency(base, many):
    return many[1] / (many[0] * base[1])
