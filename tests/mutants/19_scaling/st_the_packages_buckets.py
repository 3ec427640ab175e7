"""The buckets are the package's.

fails: step/finish, step/many
shows: this is the package's own answer
points: 15
runs: step
"""
# %% grade_id="step"
from manyhands.simulate import buckets
def step_s(slow, ready_s, sizes, bucket_bytes, all_reduce):
    free = np.zeros(len(slow))
    for bucket in buckets(sizes, bucket_bytes):
        free = all_reduce(np.maximum(free, slow * ready_s[bucket[-1]]), sum(sizes[i] for i in bucket))
    return free.max()
