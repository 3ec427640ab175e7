"""At least one byte per rank, so that it is never 0.

fails: crossover/crossover
shows: It is never slower: return 0
points: 15
"""
# %% grade_id="crossover"
def crossover_bytes(p, latency_s, bytes_per_s):
    rounds = (p - 1).bit_length()
    return latency_s * bytes_per_s * max(1, p - 1 - rounds) / (rounds - (p - 1) / p)
