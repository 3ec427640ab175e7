"""Two weighted lines find the change; then the slopes of all pairs of the larger sizes, and their median (Theil and Sen)."""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    def line(n, t):
        beta, latency_s = np.polyfit(n, t, 1, w=1 / t)
        return latency_s, 1 / beta, np.sum(((latency_s + n * beta) / t - 1)**2)

    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    cut = min(range(4, len(n) - 3), key=lambda cut: line(n[:cut], t[:cut])[2] + line(n[cut:], t[cut:])[2])
    n, t = n[cut:], t[cut:]
    i, j = np.triu_indices(len(n), 1)
    beta = np.median((t[j] - t[i]) / (n[j] - n[i]))
    return np.median(t - beta * n), 1 / beta
