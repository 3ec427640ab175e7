"""The quantile n / (n + b) of the times: right for very many workers only. The choices are made with a right step_s.

fails: backups/step
shows: is right only for very many workers
points: 16
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    return np.quantile(times_s, n / (n + b))


def best_b(machines, times_s, steps):
    draws = np.sort(np.random.default_rng(0).choice(times_s, (50_000, machines)), axis=1).mean(0)
    return int(np.argmin([steps(machines - b) * draws[machines - b - 1] for b in range(machines)]))


def cheapest_b(n, times_s):
    draws, costs = np.random.default_rng(0).choice(times_s, (20_000, 2 * n)), []
    for b in range(n):
        costs.append((n + b) * np.partition(draws[:, :n + b], n - 1, axis=1)[:, n - 1].mean())
    return int(np.argmin(costs))
