"""The first time of each size.

fails: fit/latency, fit/bandwidth
shows: Use a value that they do not move
points: 15
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    def line(n, t):
        beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
        return latency_s, 1 / beta, np.sum(((latency_s + n * beta) / t - 1)**2)

    n, t = np.array(n_bytes, float), np.array([one[0] for one in times_s])
    pairs = [(line(n[:cut], t[:cut]), line(n[cut:], t[cut:])) for cut in range(4, len(n) - 3)]
    small, large = min(pairs, key=lambda pair: pair[0][2] + pair[1][2])
    return large[:2]
