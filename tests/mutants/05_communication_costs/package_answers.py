"""The package's own functions, in place of the learner's.

fails: fit/latency, fit/bandwidth, interval/covers, interval/width, chain/gather, chain/chain, chain/pieces, ranks/ranks, fusion/finish, fusion/best
shows: fit raised PermissionError: this is the package's own answer
shows: interval raised PermissionError
shows: all_gather_s raised PermissionError
shows: most_ranks raised PermissionError
shows: finish_s raised PermissionError
points: 3
"""
# %% grade_id="fit"
from manyhands.simulate import fit

# %% grade_id="interval"
def interval(n_bytes, times_s, level, fit):
    from manyhands import simulate

    (a, b), (c, d) = simulate.interval(simulate.bootstrap(n_bytes, times_s), level)
    return (a, c), (b, d)

# %% grade_id="chain"
def all_gather_s(p, n_bytes, latency_s, bytes_per_s):
    from manyhands import simulate

    return simulate.pattern_s("all-gather", p, n_bytes, latency_s, bytes_per_s)


def chain_s(p, n_bytes, pieces, latency_s, bytes_per_s):
    return (p - 2 + pieces if p > 1 else 0) * (latency_s + n_bytes / pieces / bytes_per_s)


def best_pieces(p, n_bytes, latency_s, bytes_per_s):
    908

# %% grade_id="ranks"
def most_ranks(n_bytes, latency_s, bytes_per_s, limit):
    from manyhands import simulate

    return max(p for p in range(1, limit + 1) if p < 4 or n_bytes >= simulate.crossover_bytes(p, latency_s, bytes_per_s))

# %% grade_id="fusion"
from manyhands.simulate import finish_s


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
