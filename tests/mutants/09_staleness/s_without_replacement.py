"""The workers share the times out: drawn without replacement.

fails: backups/step
shows: two may take the same time (with replacement)
points: 16
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    ordered, all_of_them = sorted(times_s), math.comb(len(times_s), n + b)
    return sum(time * math.comb(k, n - 1) * math.comb(len(ordered) - k - 1, b) / all_of_them for k, time in enumerate(ordered))


def right(n, b, times_s):
    parts = np.arange(len(times_s) + 1) / len(times_s)
    done = sum(math.comb(n + b, j) * parts**j * (1 - parts) ** (n + b - j) for j in range(n, n + b + 1))
    return np.diff(done) @ sorted(times_s)


def best_b(machines, times_s, steps):
    return min(range(machines), key=lambda b: steps(machines - b) * right(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(n), key=lambda b: (n + b) * right(n, b, times_s))
