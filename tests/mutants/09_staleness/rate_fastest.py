"""The rate that converges fastest, where two roots meet, not the largest stable one.

fails: rate/delay, rate/curvatures
shows: This is the rate that converges fastest
points: 15
"""
# %% grade_id="rate"
def largest_stable_rate(curvatures, delays):
    return min(d**d / (d + 1) ** (d + 1) / h for h, d in zip(curvatures, delays))
