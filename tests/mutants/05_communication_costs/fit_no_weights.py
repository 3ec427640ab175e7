"""Ordinary least squares: errors in seconds.

fails: fit/latency
shows: Fit relative errors
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    def line(n, t):
        beta, latency_s = np.polyfit(n, t, 1)
        return latency_s, 1 / beta, np.sum((latency_s + n * beta - t)**2)

    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    pairs = [(line(n[:cut], t[:cut]), line(n[cut:], t[cut:])) for cut in range(4, len(n) - 3)]
    small, large = min(pairs, key=lambda pair: pair[0][2] + pair[1][2])
    return large[:2]
