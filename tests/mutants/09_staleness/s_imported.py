"""The package's expected time, imported.

fails: backups/step, backups/fixed, backups/rented
shows: this is the package's own answer, which is closed here
points: 13
"""
# %% grade_id="backups"
from manyhands.simulate.asynchrony import nth_fastest_s

def step_s(n, b, times_s):
    return nth_fastest_s(n, n + b, times_s)


def best_b(machines, times_s, steps):
    return min(range(machines), key=lambda b: steps(machines - b) * step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
