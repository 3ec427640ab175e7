"""One padded buffer of the largest gradient's size serves all of them.

runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    n = dist.get_world_size(group)
    length = lambda p: -(-p.numel() // n) * n
    buffer = loss.new_zeros(max(map(length, parameters)))
    shards = [p.new_empty(length(p) // n) for p in parameters]
    def ready(i, p):
        whole = buffer[:length(p)]
        whole.zero_()
        whole[:p.numel()] = p.grad.view(-1)
        p.grad = None
        dist.reduce_scatter_single(shards[i], whole, dist.ReduceOp.AVG, group=group)
    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i)) for i, p in enumerate(parameters)]
    loss.backward()
    for h in hooks: h.remove()
    return [s.detach() for s in shards]
