"""The crossing is searched with the package's own ring and tree.

fails: crossover/crossover
shows: crossover_bytes raised PermissionError: this is the package's own answer
points: 15
runs: crossover
"""
# %% grade_id="crossover"
from manyhands import simulate

def crossover_bytes(p, latency_s, bytes_per_s):
    low, high = 0.0, 1e15
    for _ in range(80):
        middle = (low + high) / 2
        slower = simulate.ring_s(p, middle, latency_s, bytes_per_s) > simulate.tree_s(p, middle, latency_s, bytes_per_s)
        low, high = (middle, high) if slower else (low, middle)
    return high
