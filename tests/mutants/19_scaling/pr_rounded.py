"""Whole images only.

fails: calibration/rest
shows: Return them without rounding
points: 17
"""
# %% grade_id="calibration"
def calibrate(rows, batch, network_s):
    (one, t1), (two, t2) = [(ranks, ranks * batch / images) for ranks, images in rows[:2]]
    factor = (t2 - t1) / (network_s(two) - network_s(one))
    return t1 - factor * network_s(one), factor


def predict_rest(rows, batch, network_s, calibrate):
    compute_s, factor = calibrate(rows, batch, network_s)
    return [round(ranks * batch / (compute_s + factor * network_s(ranks))) for ranks, _ in rows[2:]]
