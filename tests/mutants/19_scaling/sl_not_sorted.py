"""The times in the order in which they were measured.

fails: slowest/slowest
shows: not sorted
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    n = len(times_s)
    return np.diff((np.arange(n + 1) / n) ** p) @ np.array(times_s)


def efficiency(base, many):
    return many[1] / many[0] / (base[1] / base[0])
