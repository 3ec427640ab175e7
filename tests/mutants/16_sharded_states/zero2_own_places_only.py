"""Each hook has its own place now, and gradients and hooks stay as they were given.

fails: zero2/freed, zero2/alive
shows: parameters still have a gradient afterwards
points: 26
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    shards = [None] * len(parameters)

    def cut(i, p):
        shards[i] = reduce_shard(p.grad, group)

    for i, p in enumerate(parameters):
        p.register_post_accumulate_grad_hook(partial(cut, i))
    loss.backward()
    return shards
