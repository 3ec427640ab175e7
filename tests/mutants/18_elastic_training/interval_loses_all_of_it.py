"""Each failure is said to cost a whole interval.

fails: interval/lost
shows: in the middle of an interval
points: 25
"""
# %% grade_id="interval"
def steps_between(step_s, save_s, lives_s, ranks):
    return max(1, round(math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks) / np.mean(step_s)))


def lost(every_s, save_s, restart_s, mtbf_s):
    return save_s / every_s + (every_s + restart_s) / mtbf_s
