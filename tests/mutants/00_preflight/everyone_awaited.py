"""Blames every rank that somebody waits for, also those in the middle of a chain and outside the circle.

fails: diagnose/chain, diagnose/circle
shows: waits itself, for rank
points: 8
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    awaited = {b for a, b in edges}
    if awaited <= set(waiting):
        return "circle", sorted(waiting)
    return "absent", sorted(awaited)
