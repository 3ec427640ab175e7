"""Gradients per second are maximised, not the time to the target.

fails: backups/fixed
shows: This has the most gradients a second
points: 16
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    ordered, total, before = sorted(times_s), 0.0, 0.0
    for k, time in enumerate(ordered, 1):
        p = k / len(ordered)
        now = sum(math.comb(n + b, j) * p**j * (1 - p) ** (n + b - j) for j in range(n, n + b + 1))
        total, before = total + time * (now - before), now
    return total


def best_b(machines, times_s, steps):
    return max(range(machines), key=lambda b: (machines - b) / step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
