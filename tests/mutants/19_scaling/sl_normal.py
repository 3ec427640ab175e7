"""A normal law, and its sqrt(2 ln p).

fails: slowest/slowest
shows: assumes that the times have a normal distribution
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    return np.mean(times_s) + np.std(times_s) * np.sqrt(2 * np.log(p))


def efficiency(base, many):
    return (many[1] / many[0]) / (base[1] / base[0])
