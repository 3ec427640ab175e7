"""Each name has a connected copy: the gradients are right, and a tied weight is copied twice.

fails: replicate/tied
shows: Make one copy for each parameter, not for each name
points: 22
runs: replicate
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for i, device in enumerate(devices):
        replica = copy.deepcopy(module)
        for own, layer in zip(list(replica.modules()), list(module.modules())):
            for key, parameter in layer._parameters.items():
                own._parameters[key] = parameter.to(device, copy=True)
            for key, buffer in layer._buffers.items():
                own._buffers[key] = buffer.to(device, copy=True) if i else buffer
        replicas.append(replica)
    return replicas
