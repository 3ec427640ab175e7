"""Only parameters are copied and moved.

fails: replicate/copies, replicate/buffers, forward/statistics
shows: The buffers have stayed behind
points: 20
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for device in devices:
        memo = {id(one): one.to(device, copy=True) for one in module.parameters()}
        replicas.append(copy.deepcopy(module, memo))
    return replicas
