"""A lambda in a loop: all hooks write to the last place.

fails: zero2/shards
shows: sees the loop's last value
points: 26
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

    hooks = []
    for i, p in enumerate(parameters):
        hooks.append(p.register_post_accumulate_grad_hook(lambda p: ready(i, p)))
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
