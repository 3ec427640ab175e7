"""Stages may be empty: seen where one layer is so dear that they cost nothing.

fails: cut/blocks, cut/dearest
shows: a stage is empty
points: 19
runs: cut
"""
# %% grade_id="cut"
from itertools import combinations_with_replacement

def cut(costs, stages):
    n = len(costs)
    if n < stages:
        raise ValueError("fewer layers than stages")
    best = None
    for inner in combinations_with_replacement(range(0, n + 1), stages - 1):
        edges = [0, *inner, n]
        blocks = [slice(a, b) for a, b in zip(edges, edges[1:])]
        dearest = max(sum(costs[b]) for b in blocks)
        if best is None or dearest < best[0]:
            best = dearest, blocks
    return best[1]
