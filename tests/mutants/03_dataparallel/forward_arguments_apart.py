"""Keyword arguments are cut by themselves: what is no tensor goes to all devices, and a replica is called without inputs. nn.DataParallel does so (PyTorch 2.13).

fails: forward/outputs
shows: Cut positional and keyword arguments together
points: 22
"""
# %% grade_id="forward"
def data_parallel(module, inputs, kwargs, devices, output_device):
    own_inputs = scatter(inputs, devices)
    own_kwargs = scatter(kwargs, devices) if kwargs else [{}] * len(own_inputs)
    own_inputs += [()] * (len(own_kwargs) - len(own_inputs))
    used = devices[:len(own_inputs)]
    outputs = parallel_apply(replicate(module, used), own_inputs, own_kwargs, used)
    return gather(outputs, output_device)
