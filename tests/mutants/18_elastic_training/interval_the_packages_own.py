"""Young's rule is the package's.

fails: interval/steps, interval/lost
shows: this is the package's own answer
points: 23
runs: interval
"""
# %% grade_id="interval"
from manyhands.simulate.survival import young_s


def steps_between(step_s, save_s, lives_s, ranks):
    return max(1, round(young_s(np.mean(save_s), np.mean(lives_s) / ranks) / np.mean(step_s)))


def lost(every_s, save_s, restart_s, mtbf_s):
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
