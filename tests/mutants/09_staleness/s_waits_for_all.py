"""The step waits for all n + b workers: each backup makes it slower.

fails: backups/step, backups/fixed, backups/rented
shows: but the step is made as soon as
points: 13
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    below = (np.arange(len(times_s) + 1) / len(times_s)) ** (n + b)
    return np.diff(below) @ np.sort(times_s)


def best_b(machines, times_s, steps):
    return min(range(machines), key=lambda b: steps(machines - b) * step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
