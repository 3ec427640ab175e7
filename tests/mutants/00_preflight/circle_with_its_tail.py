"""Walks along the arrows, but counts the way to the circle as a part of it.

fails: diagnose/circle
shows: no rank in the circle waits for it
points: 9
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    absent = {b for a, b in edges} - set(waiting)
    if absent:
        return "absent", sorted(absent)
    after, here, path = dict(edges), min(waiting), []
    while here not in path:
        path.append(here)
        here = after[here]
    return "circle", sorted(path)
