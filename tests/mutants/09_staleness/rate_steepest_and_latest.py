"""The largest curvature and the longest delay together: safe, but no direction has both.

fails: rate/curvatures
shows: but no direction has both
points: 17
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return 2 * math.sin(math.pi / (2 * (2 * max(delays) + 1))) / max(curvatures)
