"""Asynchronous reduce-scatters are waited for after backward, so all padded copies are in memory.

fails: zero2/alive
shows: two whole gradients, the shards and what backward itself needs
points: 27
runs: zero2
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters, works = list(parameters), []
    shards, n = [None] * len(parameters), dist.get_world_size(group)
    def ready(i, p):
        whole = pad(p.grad.flatten(), (0, -p.numel() % n)).clone()
        own = whole.new_empty(len(whole) // n)
        works.append((dist.reduce_scatter_single(own, whole, group=group, async_op=True), whole))
        shards[i] = own
        p.grad = None
    hooks = [p.register_post_accumulate_grad_hook(partial(ready, i)) for i, p in enumerate(parameters)]
    loss.backward()
    for work, _ in works:
        work.wait()
    for hook in hooks:
        hook.remove()
    return [own / n for own in shards]
