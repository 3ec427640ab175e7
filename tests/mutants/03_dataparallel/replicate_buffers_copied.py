"""Replica 0 has copies of the buffers like all the others.

fails: replicate/buffers, forward/statistics
shows: What replica 0 has written into its buffer is lost
shows: Batch norm's running statistics did not change
points: 21
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for device in devices:
        memo = {id(one): one.to(device, copy=True) for one in (*module.parameters(), *module.buffers())}
        replicas.append(copy.deepcopy(module, memo))
    return replicas
