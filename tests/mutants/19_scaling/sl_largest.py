"""The largest measured time, for any p.

fails: slowest/slowest
shows: p ranks do not always meet it
points: 17
"""
# %% grade_id="slowest"
def slowest_s(p, times_s):
    return max(times_s)


def efficiency(base, many):
    return (many[1] / many[0]) / (base[1] / base[0])
