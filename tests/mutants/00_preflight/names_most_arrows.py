"""Blames the rank that most arrows lead to, wherever that rank itself waits.

fails: diagnose/absent, diagnose/chain, diagnose/circle
shows: waits itself, for rank
points: 7
"""
# %% grade_id="diagnose"
def diagnose(waiting, edges):
    awaited = [b for a, b in edges]
    return "absent", [max(sorted(set(awaited)), key=awaited.count)]
