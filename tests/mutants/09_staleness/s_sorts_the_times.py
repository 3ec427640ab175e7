"""The caller's times are sorted in place.

fails: backups/step, backups/fixed, backups/rented
shows: step_s has changed `times_s`
points: 13
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    times_s.sort()
    parts = np.arange(len(times_s) + 1) / len(times_s)
    done = sum(math.comb(n + b, j) * parts**j * (1 - parts) ** (n + b - j) for j in range(n, n + b + 1))
    return np.diff(done) @ times_s


def best_b(machines, times_s, steps):
    return min(range(machines), key=lambda b: steps(machines - b) * step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * step_s(n, b, times_s))
