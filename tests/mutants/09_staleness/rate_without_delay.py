"""The rate of a synchronous run: 2 / curvature, whatever the delay.

fails: rate/delay, rate/curvatures
shows: This is the rate without delay, 2 / curvature
points: 15
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return 2 / max(curvatures)
