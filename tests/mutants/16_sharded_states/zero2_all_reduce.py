"""An all-reduce, of which each rank keeps its shard.

fails: zero2/alive
shows: gives each rank its shard, with half the bytes
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
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=group); found[i] = shard(p.grad, dist.get_rank(group), dist.get_world_size(group))
        p.grad = None

    hooks = [p.register_post_accumulate_grad_hook(partial(cut, i)) for i, p in enumerate(parameters)]
    try:
        loss.backward()
    finally:
        for hook in hooks:
            hook.remove()
    return found

