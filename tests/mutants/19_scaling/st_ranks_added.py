"""The times of all ranks are added up.

fails: step/finish, step/many
shows: are added up
points: 15
"""
# %% grade_id="step"
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    return float(np.sum(slow * ready_s[-1]))
