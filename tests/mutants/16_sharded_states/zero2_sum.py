"""The gradients are summed.

fails: zero2/shards
shows: This is the sum over the ranks
points: 26
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        shards[i] = reduce_shard(p.grad, group) * dist.get_world_size(group)
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
