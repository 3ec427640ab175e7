"""The tutorial's version: connected by name, and a tied weight has two of them.

fails: replicate/gradients, replicate/tied, forward/gradients
shows: under the second one the replica has an unconnected copy
shows: once for each of its names
shows: The gradient of the tied weight is not complete
points: 19
"""
# %% grade_id="replicate"
def replicate(module, devices):
    replicas = []
    for i, device in enumerate(devices):
        replica = copy.deepcopy(module).to(device)
        for name, parameter in module.named_parameters():
            path, _, key = name.rpartition(".")
            replica.get_submodule(path)._parameters[key] = parameter.to(device, copy=True)
        for name, buffer in module.named_buffers():
            path, _, key = name.rpartition(".")
            replica.get_submodule(path)._buffers[key] = buffer.to(device, copy=True) if i else buffer
        replicas.append(replica)
    return replicas
