"""The largest message by its time, with the latency in it.

fails: fit/bandwidth
shows: the latency is a part of that time
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    return np.polyfit(n, t, 1, w=1 / t)[1], n[-1] / t[-1]
