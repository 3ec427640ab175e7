"""The sine is replaced by its angle: too large for short delays.

fails: rate/delay, rate/curvatures
shows: the sine is replaced by its angle
points: 15
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return min(math.pi / (2 * d + 1) / h for h, d in zip(curvatures, delays))
