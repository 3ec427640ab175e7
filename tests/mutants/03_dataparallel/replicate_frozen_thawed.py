"""Each replica's frozen weight requires a gradient.

fails: replicate/gradients
shows: either in the original or in a replica
points: 21
runs: replicate
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for i, device in enumerate(devices):
        memo = {id(one): one.to(device, copy=True) if i else one.view_as(one) for one in (*module.parameters(), *module.buffers())}
        for one in module.parameters():
            if not one.requires_grad:
                memo[id(one)].requires_grad_()
        replicas.append(copy.deepcopy(module, memo))
    return replicas
