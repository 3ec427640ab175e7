"""The two numbers in the wrong order.

fails: fit/latency, fit/bandwidth
shows: Latency and bandwidth are exchanged
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return 1 / beta, latency_s
