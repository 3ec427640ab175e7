"""A distance that is only rounding is taken for one that counts.

fails: diagnose/named
shows: The distances are due to rounding
points: 11
"""
# %% grade_id="diagnose"
def diagnose(symptoms):
    if symptoms["apart_at_start"] != 0:
        return "start"
    if symptoms["apart_at_end"] != 0:
        return "gradients"
    if symptoms["rows_counted"] != symptoms["rows_there"]:
        return "rows"
    return "files" if symptoms["writers"] != 1 else "nothing"
