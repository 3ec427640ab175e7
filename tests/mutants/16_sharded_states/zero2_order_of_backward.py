"""The shards are appended as backward makes them.

fails: zero2/shards
shows: in a different order from the parameters
points: 26
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = []

    def ready(i, p):
        shards.append(reduce_shard(p.grad, group))
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
