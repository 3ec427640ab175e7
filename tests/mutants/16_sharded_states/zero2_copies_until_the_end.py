"""The hooks only copy whole gradients, which are reduced after backward.

fails: zero2/alive
shows: a copy of a gradient is as large as the gradient
points: 27
runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    parameters, whole = list(parameters), {}

    def take(i, p):
        whole[i] = p.grad.clone()
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(take, i)) for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return [reduce_shard(whole[i], group) for i in range(len(parameters))]

