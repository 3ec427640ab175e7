"""The mean of the curvatures and the longest delay are taken: right for a single direction only.

fails: rate/curvatures
shows: The mean of the curvatures does not decide
points: 17
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return 2 * math.sin(math.pi / (2 * (2 * max(delays) + 1))) / np.mean(curvatures)
