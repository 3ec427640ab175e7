"""The package's calibrate gives the answer.

fails: calibration/constants
shows: this is the package's own answer
points: 17
runs: calibration
"""
# %% grade_id="calibration"
from manyhands.simulate import calibrate as fit_all
def calibrate(rows, batch, network_s):
    return fit_all(lambda constants, ranks: ranks * batch / (constants[0] + constants[1] * network_s(ranks)), rows[:2], (1.0, 1.0))

def predict_rest(rows, batch, network_s, calibrate):
    c, f = calibrate(rows, batch, network_s)
    return [r * batch / (c + f * network_s(r)) for r, _ in rows[2:]]
