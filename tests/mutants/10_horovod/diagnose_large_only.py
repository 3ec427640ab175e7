"""Ranks that are less than 0.5 apart at the end count as equal.

fails: diagnose/named
shows: The ranks start together but end apart
points: 11
runs: diagnose
"""
# %% grade_id="diagnose"
def diagnose(symptoms):
    if symptoms["apart_at_start"] > 1e-9:
        return "start"
    if symptoms["apart_at_end"] > 0.5:
        return "gradients"
    if symptoms["rows_counted"] != symptoms["rows_there"]:
        return "rows"
    return "files" if symptoms["writers"] != 1 else "nothing"
