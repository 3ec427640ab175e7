"""The mean of the repeated times.

fails: fit/latency, fit/bandwidth
shows: drag the mean along
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.mean(one) for one in times_s])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / beta
