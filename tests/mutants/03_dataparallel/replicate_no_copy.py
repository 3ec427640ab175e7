"""On one device, .to(device) makes no copy: all replicas write into one buffer.

fails: replicate/buffers, forward/statistics
shows: Only replica 0 may share it
shows: All replicas have written batch norm's running statistics
points: 21
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for device in devices:
        memo = {id(one): one.to(device) for one in (*module.parameters(), *module.buffers())}
        replicas.append(copy.deepcopy(module, memo))
    return replicas
