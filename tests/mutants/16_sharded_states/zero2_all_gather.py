"""The whole gradients of all ranks are gathered, and their mean is cut.

fails: zero2/alive
shows: Is something sent more than once
points: 27
runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    parameters = list(parameters)
    found = [None] * len(parameters)

    def cut(i, p):
        n = dist.get_world_size(group); parts = [torch.empty_like(p.grad) for _ in range(n)]; dist.all_gather(parts, p.grad, group=group); found[i] = shard(sum(parts) / n, dist.get_rank(group), n); del parts
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(cut, i)) for i, p in enumerate(parameters)]
    try:
        loss.backward()
    finally:
        for hook in hooks:
            hook.remove()
    return found

