"""The mean of the curvatures is taken: right for one of them only.

fails: rate/curvatures
shows: The mean of the curvatures does not decide
points: 17
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delay):
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / np.mean(curvatures)
