"""The hooks are registered once and stay: whoever trains the network in another way later has no gradients.

fails: zero2/freed
shows: 12 hooks are left
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    """Backward of `loss`: this rank's shard of each parameter's mean gradient."""
    def ready(p):
        p.own = reduce_shard(p.grad, group)
        p.grad = None

    for p in parameters:
        if not hasattr(p, "own"):
            p.register_post_accumulate_grad_hook(ready)
    loss.backward()
    return [p.own for p in parameters]
