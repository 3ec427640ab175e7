"""A global keeps a copy of the last gradient.

fails: zero2/alive
shows: Does a list or a global keep copies of gradients?
points: 27
runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
LAST = {}
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    shards = [None] * len(parameters)
    def ready(i, p):
        LAST["g"] = p.grad.clone()
        shards[i] = reduce_shard(LAST["g"], group)
        p.grad = None
    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i)) for i, p in enumerate(parameters)]
    loss.backward()
    LAST["w"] = torch.zeros(9, 9).double() + 1
    for hook in hooks:
        hook.remove()
    return shards
