"""The search ends where one backup more costs more.

fails: backups/fixed, backups/rented
shows: instead of stopping at the first minimum
points: 15
"""
# %% grade_id="backups"
def step_s(n, b, times_s):
    workers, ordered = n + b, sorted(times_s)

    def all_done(k):
        p = k / len(ordered)
        return sum(math.comb(workers, j) * p**j * (1 - p) ** (workers - j) for j in range(n, workers + 1))

    return sum(time * (all_done(k + 1) - all_done(k)) for k, time in enumerate(ordered))


def first_minimum(cost, size):
    b = 0
    while b + 1 < size and cost(b + 1) < cost(b):
        b += 1
    return b


def best_b(machines, times_s, steps):
    return first_minimum(lambda b: steps(machines - b) * step_s(machines - b, b, times_s), machines)


def cheapest_b(n, times_s):
    return first_minimum(lambda b: (n + b) * step_s(n, b, times_s), n)
