"""The shortest step is chosen, and the steps, and the rent, are forgotten.

fails: backups/fixed, backups/rented
shows: These steps are the shortest, but each averages few gradients
shows: because all n + b machines are paid for
points: 15
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    return np.sort(np.random.default_rng(0).choice(times_s, (100_000, n + b)), axis=1)[:, n - 1].mean()


def best_b(machines, times_s, steps):
    return machines - 1


def cheapest_b(n, times_s):
    return n - 1
