"""The fraction of a step is rounded down or up, whichever is not the nearest.

fails: interval/steps
shows: round that to the nearest whole number
points: 24
"""
# %% grade_id="interval"
def steps_between(step_s, save_s, lives_s, ranks):
    exact = math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks) / np.mean(step_s)
    return max(1, math.floor(exact) + math.ceil(exact) - round(exact))


def lost(every_s, save_s, restart_s, mtbf_s):
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
