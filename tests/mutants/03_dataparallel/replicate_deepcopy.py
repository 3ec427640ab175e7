"""The copies have parameters of their own: all gradients stay in the replicas.

fails: replicate/gradients, replicate/buffers, forward/gradients, forward/statistics
shows: The original has no gradient, perhaps because the replicas' parameters are separate leaves
shows: What replica 0 has written into its buffer is lost
shows: Batch norm's running statistics did not change
points: 18
"""
# %% grade_id="replicate"
def replicate(module, devices):
    return [copy.deepcopy(module).to(device) for device in devices]
