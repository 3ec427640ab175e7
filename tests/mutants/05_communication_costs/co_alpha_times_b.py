"""The size at which one message costs twice its latency.

fails: crossover/crossover
shows: depends on p = 2 too
points: 15
"""
# %% grade_id="crossover"
def crossover_bytes(p, latency_s, bytes_per_s):
    return latency_s * bytes_per_s
