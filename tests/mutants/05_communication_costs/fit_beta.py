"""Seconds per byte in place of bytes per second.

fails: fit/bandwidth
shows: Return the reciprocal instead
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, beta
