"""The hooks fill one long vector with all gradients, which is cut at the end.

fails: zero2/alive
shows: keep no copy of it (clone(), one long vector)
points: 27
runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    sizes = [p.numel() for p in parameters]
    long = loss.new_zeros(sum(sizes))
    def take(view, p):
        view.copy_(p.grad.flatten())
        p.grad = None
    hooks = [p.register_post_accumulate_grad_hook(partial(take, view)) for p, view in zip(parameters, long.split(sizes))]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return [reduce_shard(view, group) for view in long.split(sizes)]
