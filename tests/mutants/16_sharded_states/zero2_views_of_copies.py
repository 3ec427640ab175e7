"""The shard is a view of a padded copy of the whole gradient, which stays alive with it.

fails: zero2/alive
shows: a slice of a padded or copied gradient keeps all of it
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        ranks = dist.get_world_size(group)
        dist.all_reduce(p.grad.div_(ranks), group=group)
        padded = pad(p.grad.flatten().clone(), (0, -p.grad.numel() % ranks))
        shards[i] = padded.chunk(ranks)[dist.get_rank(group)]
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
