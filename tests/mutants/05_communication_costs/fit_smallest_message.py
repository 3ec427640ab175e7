"""The time of the smallest message of the protocol is taken for the latency.

fails: fit/latency
shows: are not nothing on this link
points: 16
"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    def line(n, t):
        beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
        return latency_s, 1 / beta, np.sum(((latency_s + n * beta) / t - 1)**2)

    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    cut = min(range(4, len(n) - 3), key=lambda cut: line(n[:cut], t[:cut])[2] + line(n[cut:], t[cut:])[2])
    return t[cut], (n[-1] - n[cut]) / (t[-1] - t[cut])
