"""The first time of each size.

fails: fit/latency, fit/bandwidth
shows: Use a value that they do not move
points: 15
runs: fit
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    t = np.array([o[0] for o in times_s])
    s, l = np.polyfit(np.array(n_bytes, float), t, 1, w=1 / t)
    return l, 1 / s
