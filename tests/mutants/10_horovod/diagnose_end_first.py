"""The distance at the end is looked at first: a missing broadcast is taken for missing gradients.

fails: diagnose/named
shows: because the weights were not broadcast
points: 11
"""
# %% grade_id="diagnose"
def diagnose(symptoms):
    if symptoms["apart_at_end"] > 1e-9:
        return "gradients"
    if symptoms["apart_at_start"] > 1e-9:
        return "start"
    if symptoms["rows_counted"] != symptoms["rows_there"]:
        return "rows"
    return "files" if symptoms["writers"] != 1 else "nothing"
