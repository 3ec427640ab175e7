"""Blames every rank that does not wait, also one that has finished and that nobody waits for.

fails: diagnose/chain
shows: no arrow leads to it
points: 9
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    ranks = range(1 + max(max(edge) for edge in edges))
    idle = [rank for rank in ranks if rank not in waiting]
    absent = [rank for rank in idle if any(b == rank for a, b in edges)]
    if absent:
        return "absent", idle
    after, here, path = dict(edges), min(waiting), []
    while here not in path:
        path.append(here)
        here = after[here]
    return "circle", path[path.index(here):]
