"""Replicas as in torch/nn/parallel: shallow copies of each module, with connected copies as plain attributes; the original's modules are walked once."""
# %% grade_id="replicate"
def replicate(module, devices):
    layers, replicas = list(module.modules()), []
    for i, device in enumerate(devices):
        copies = {one: one.to(device, copy=True) if i else one.view_as(one) for one in [*module.parameters(), *module.buffers()]}
        shells = {layer: layer._replicate_for_data_parallel() for layer in layers}
        for layer, shell in shells.items():
            for key, child in layer._modules.items():
                setattr(shell, key, shells[child])
            for key, one in [*layer._parameters.items(), *layer._buffers.items()]:
                setattr(shell, key, None if one is None else copies[one])
        replicas.append(shells[module])
    return replicas
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    together = scatter({"inputs": inputs, "kwargs": kwargs}, devices)
    devices = devices[:len(together)]
    outputs = parallel_apply(replicate(module, devices), [one["inputs"] for one in together], [one["kwargs"] for one in together], devices)
    return gather(outputs, output_device)
