"""The package's own functions, in place of the learner's.

fails: fit/latency, fit/bandwidth, interval/covers, interval/width, all-reduce/ring, all-reduce/tree, all-reduce/server, crossover/crossover, fusion/finish, fusion/best
shows: fit raised PermissionError: this is the package's own answer
shows: interval raised PermissionError
shows: ring_s raised PermissionError
shows: crossover_bytes raised PermissionError
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

# %% grade_id="all-reduce"
from manyhands.simulate import parameter_server_s as server_s
from manyhands.simulate import ring_s, tree_s

# %% grade_id="crossover"
from manyhands.simulate import crossover_bytes

# %% grade_id="fusion"
from manyhands.simulate import finish_s


def best_bucket_bytes(ready_s, n_bytes, all_reduce_s):
    sizes = [sum(n_bytes) / k for k in range(1, len(n_bytes) + 1)]
    return min(sizes, key=lambda size: finish_s(ready_s, n_bytes, size, all_reduce_s))
