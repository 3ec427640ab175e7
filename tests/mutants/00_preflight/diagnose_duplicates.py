"""Absent ranks are listed once for each arrow.

fails: diagnose/absent, diagnose/chain
shows: appears more than once in your answer
points: 8
runs: diagnose
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    absent = [b for a, b in edges if b not in waiting]
    if absent:
        return "absent", absent
    after = dict(edges); here, path = min(waiting), []
    while here not in path:
        path.append(here); here = after[here]
    return "circle", path[path.index(here):]
