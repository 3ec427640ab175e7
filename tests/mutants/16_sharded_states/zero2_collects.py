"""The hooks put the gradients into a list, and they are cut at the end.

fails: zero2/alive
shows: Does something else, such as a list, keep one alive?
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        shards[i] = p.grad
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return [reduce_shard(gradient, group) for gradient in shards]
