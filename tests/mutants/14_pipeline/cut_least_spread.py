"""The dearest and the cheapest stage are as close as can be.

fails: cut/dearest
shows: This evens out all stages
points: 20
runs: cut
"""
# %% grade_id="cut"
from itertools import combinations

def cut(costs, stages):
    n = len(costs)
    if n < stages:
        raise ValueError("fewer layers than stages")
    best = None
    for inner in combinations(range(1, n), stages - 1):
        edges = [0, *inner, n]
        blocks = [slice(a, b) for a, b in zip(edges, edges[1:])]
        t = [sum(costs[b]) for b in blocks]
        dearest = max(t) - min(t)
        if best is None or dearest < best[0]:
            best = dearest, blocks
    return best[1]
