"""The larger half of the sizes, wherever the protocol changes.

fails: fit/latency, fit/bandwidth
shows: also goes through sizes that the protocol for small messages has sent
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    half = len(n_bytes) // 2
    n, t = np.array(n_bytes[half:], float), np.array([np.median(one) for one in times_s[half:]])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / beta
