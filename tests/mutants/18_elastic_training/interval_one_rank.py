"""The life of one rank is taken for that of the job.

fails: interval/steps
shows: divided by the number of ranks
points: 24
"""
# %% grade_id="interval"
def steps_between(step_s, save_s, lives_s, ranks):
    return max(1, round(math.sqrt(2 * np.mean(save_s) * np.mean(lives_s)) / np.mean(step_s)))


def lost(every_s, save_s, restart_s, mtbf_s):
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s
