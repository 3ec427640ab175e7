"""The four largest sizes, which show little of the latency.

fails: fit/latency
shows: leaves out sizes that the protocol for large messages has sent
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes[-4:], float), np.array([np.median(one) for one in times_s[-4:]])
    beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
    return latency_s, 1 / beta
