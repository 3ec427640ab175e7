"""An all-reduce of the whole gradient in place, of which the shard is a view: the whole stays alive.

fails: zero2/alive
shows: whole gradients were in memory while backward was running
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def ready(i, p):
        ranks, size = dist.get_world_size(group), -(-p.grad.numel() // dist.get_world_size(group))
        dist.all_reduce(p.grad.div_(ranks), group=group)
        own = p.grad.view(-1)[dist.get_rank(group) * size:][:size]
        shards[i] = own if len(own) == size else pad(own, (0, size - len(own)))
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i))
             for i, p in enumerate(parameters)]
    loss.backward()
    for hook in hooks:
        hook.remove()
    return shards
