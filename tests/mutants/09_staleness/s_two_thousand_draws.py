"""The time of a step from 2,000 draws only; the choices are right.

fails: backups/step
shows: 200,000 draws are enough
points: 16
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    return np.sort(np.random.default_rng(3).choice(times_s, (2_000, n + b)), axis=1)[:, n - 1].mean()


def best_b(machines, times_s, steps):
    draws = np.sort(np.random.default_rng(1).choice(times_s, (50_000, machines)), axis=1).mean(0)
    return int(np.argmin([steps(machines - b) * draws[machines - b - 1] for b in range(machines)]))


def cheapest_b(n, times_s):
    draws = np.random.default_rng(2).choice(times_s, (30_000, 2 * n))
    costs = [(n + b) * np.partition(draws[:, :n + b], n - 1, axis=1)[:, n - 1].mean() for b in range(n)]
    return costs.index(min(costs))
