"""The rate is divided by delay + 1, as if that many gradients of the same weights were added up.

fails: rate/delay, rate/curvatures
shows: arrived together. With a delay of
points: 15
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return min(2 / (d + 1) / h for h, d in zip(curvatures, delays))
