"""The slopes of all pairs of sizes, and their median (Theil and Sen): no weights are needed.

"""
# %% grade_id="fit"
def fit(n_bytes, times_s):
    n, t = np.array(n_bytes, float), np.array([np.median(one) for one in times_s])
    i, j = np.triu_indices(len(n), 1)
    beta = np.median((t[j] - t[i]) / (n[j] - n[i]))
    return np.median(t - beta * n), 1 / beta
