"""The hooks are not removed: at the second call there are two of each.

fails: zero2/shards, zero2/freed, zero2/alive
shows: is a hook left from an earlier call
points: 24
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        shards[i] = reduce_shard(p.grad, group)
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    return shards
