"""The mean of the times is taken for the time of a step: stragglers are averaged away, and no backup seems to help.

fails: backups/step, backups/fixed, backups/rented
shows: The mean of the times is the wait for one worker
shows: No backup at all
points: 13
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    return sum(times_s) / len(times_s)


def best_b(machines, times_s, steps):
    return min(range(machines), key=lambda b: steps(machines - b) * step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
