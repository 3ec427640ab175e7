"""Each reduce-scatter is waited for in the next hook.

runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    n, shards, flight = dist.get_world_size(group), [None] * len(parameters), []
    def ready(i, p):
        while flight:
            flight.pop()[0].wait()
        whole = pad(p.grad.flatten(), (0, -p.numel() % n))
        p.grad = None
        shards[i] = whole.new_empty(len(whole) // n)
        flight.append((dist.reduce_scatter_single(shards[i], whole, dist.ReduceOp.AVG, group=group, async_op=True), whole))
    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i)) for i, p in enumerate(parameters)]
    loss.backward()
    while flight:
        flight.pop()[0].wait()
    for h in hooks: h.remove()
    return shards
