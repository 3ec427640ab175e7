"""copy.copy shares everything below the top: the copies are put into the original.

fails: replicate/copies, replicate/gradients, replicate/buffers, replicate/tied
shows: The original has changed
points: 18
runs: replicate
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for device in devices:
        replica = copy.copy(module)
        for layer in replica.modules():
            for key, parameter in layer._parameters.items():
                layer._parameters[key] = parameter.to(device, copy=True)
            for key, buffer in layer._buffers.items():
                layer._buffers[key] = buffer.to(device, copy=True)
        replicas.append(replica)
    return replicas
