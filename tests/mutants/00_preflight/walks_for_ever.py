"""Follows the arrows until a rank waits for nobody: in a circle it never stops.

fails: diagnose/circle
shows: did not end within
points: 9
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    absent = {b for a, b in edges} - set(waiting)
    here = min(waiting)
    while here in waiting:
        here = next((b for a, b in edges if a == here and b in absent), next(b for a, b in edges if a == here))
    return "absent", sorted(absent)
