"""The formula for a delay that is one less.

fails: rate/delay, rate/curvatures
shows: This is the bound for delay
points: 15
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return min(2 * math.sin(math.pi / (2 * (2 * d - 1))) / h for h, d in zip(curvatures, delays))
