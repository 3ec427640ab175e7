"""torch.autograd.grad in the place of backward: all whole gradients are there at its end, and no p.grad has seen one.

fails: zero2/alive
shows: Only 0 of 12 parameters got their gradient from loss.backward()
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    gradients = torch.autograd.grad(loss, parameters)
    return [reduce_shard(gradient, group) for gradient in gradients]
