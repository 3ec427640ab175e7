"""Equal times count once.

fails: slowest/slowest
shows: measured twice
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    times = np.unique(times_s)
    return np.diff((np.arange(len(times) + 1) / len(times)) ** p) @ times


def efficiency(base, many):
    return many[1] / many[0] / (base[1] / base[0])
