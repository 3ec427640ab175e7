"""At least one backup, always.

fails: backups/fixed, backups/rented
shows: b = 0 is a choice too
points: 15
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    workers, ordered = n + b, sorted(times_s)

    def all_done(k):
        p = k / len(ordered)
        return sum(math.comb(workers, j) * p**j * (1 - p) ** (workers - j) for j in range(n, workers + 1))

    return sum(time * (all_done(k + 1) - all_done(k)) for k, time in enumerate(ordered))


def best_b(machines, times_s, steps):
    return min(range(1, machines), key=lambda b: steps(machines - b) * step_s(machines - b, b, times_s))


def cheapest_b(n, times_s):
    return min(range(1, n), key=lambda b: (n + b) * step_s(n, b, times_s))
