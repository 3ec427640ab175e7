"""The package's formula, imported.

fails: rate/delay, rate/curvatures
shows: this is the package's own answer, which is closed here
points: 15
"""
# %% grade_id="rate"
from manyhands.simulate.asynchrony import stable_rate as found

def largest_stable_rate(curvatures, delays):
    return min(found(d, h) for h, d in zip(curvatures, delays))
