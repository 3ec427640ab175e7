"""log2 p is not rounded up.

fails: crossover/crossover
shows: *rounded up*: (p - 1).bit_length()
points: 15
"""
# %% grade_id="crossover"
def crossover_bytes(p, latency_s, bytes_per_s):
    rounds = np.log2(p)
    return latency_s * bytes_per_s * (p - 1 - rounds) / (rounds - (p - 1) / p)
