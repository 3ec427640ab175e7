"""A checkpoint that nobody wrote is not noticed.

fails: diagnose/named
shows: No rank wrote the checkpoint
points: 11
"""
# %% grade_id="diagnose"
def diagnose(symptoms):
    if symptoms["apart_at_start"] > 1e-9:
        return "start"
    if symptoms["apart_at_end"] > 1e-9:
        return "gradients"
    if symptoms["rows_counted"] != symptoms["rows_there"]:
        return "rows"
    return "files" if symptoms["writers"] > 1 else "nothing"
