"""Perfect scaling from the first row.

fails: calibration/rest
shows: the time of the network is missing
points: 17
"""
# %% grade_id="calibration"
def calibrate(rows, batch, network_s):
    (one, t1), (two, t2) = [(ranks, ranks * batch / images) for ranks, images in rows[:2]]
    factor = (t2 - t1) / (network_s(two) - network_s(one))
    return t1 - factor * network_s(one), factor


def predict_rest(rows, batch, network_s, calibrate):
    return [ranks * rows[0][1] / rows[0][0] for ranks, _ in rows[2:]]
