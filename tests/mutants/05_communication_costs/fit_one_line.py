"""One line through all sizes, as in the tutorial.

fails: fit/latency, fit/bandwidth
shows: Find the size at which the protocol changes
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / beta
