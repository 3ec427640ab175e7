"""Where a step is longer than Young's interval, there is none between two checkpoints.

fails: interval/steps
shows: At least one step
points: 24
"""
# %% grade_id="interval"
def steps_between(step_s, save_s, lives_s, ranks):
    return round(math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks) / np.mean(step_s))


def lost(every_s, save_s, restart_s, mtbf_s):
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
