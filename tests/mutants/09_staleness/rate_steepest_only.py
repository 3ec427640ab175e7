"""The steepest direction decides, with its delay: wrong if a flatter one is later.

fails: rate/curvatures
shows: This is right for the largest curvature
points: 17
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    steepest = np.argmax(curvatures)
    return 2 * math.sin(math.pi / (2 * (2 * delays[steepest] + 1))) / curvatures[steepest]
