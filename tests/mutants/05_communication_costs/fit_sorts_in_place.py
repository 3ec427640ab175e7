"""Sorts the caller's lists for the medians.

fails: fit/latency, fit/bandwidth
shows: fit has changed `times_s`
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    for one in times_s:
        one.sort()
    n, t = np.array(n_bytes, float), np.array([one[len(one) // 2] for one in times_s])
    seconds_per_byte, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / seconds_per_byte
