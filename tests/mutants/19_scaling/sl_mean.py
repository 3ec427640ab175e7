"""The mean of one rank for the slowest of p.

fails: slowest/slowest
shows: This is the mean of one rank
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    return np.mean(times_s)


def efficiency(base, many):
    return (many[1] / many[0]) / (base[1] / base[0])
