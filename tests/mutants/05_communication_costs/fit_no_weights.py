"""Ordinary least squares: errors in seconds.

fails: fit/latency
shows: Fit relative errors
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    beta, latency_s = np.polyfit(n_bytes, [np.median(one) for one in times_s], 1)
    return latency_s, 1 / beta
