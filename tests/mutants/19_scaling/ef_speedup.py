"""The speed-up in place of the efficiency.

fails: slowest/efficiency
shows: This is the speed-up
points: 18
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    n = len(times_s)
    return np.diff((np.arange(n + 1) / n) ** p) @ np.sort(times_s)


def efficiency(base, many):
    return many[1] / base[1]
