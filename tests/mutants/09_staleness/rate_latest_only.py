"""The latest direction decides: wrong if a steeper one is fresher.

fails: rate/curvatures
shows: This is right for the longest delay
points: 17
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    latest = np.argmax(delays)
    return 2 * math.sin(math.pi / (2 * (2 * delays[latest] + 1))) / curvatures[latest]
