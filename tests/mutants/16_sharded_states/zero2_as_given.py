"""Nothing is repaired: one place for all shards, gradients that stay, hooks that stay.

fails: zero2/shards, zero2/freed, zero2/alive
shows: sees the loop's last value
shows: parameters still have a gradient afterwards
points: 24
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None):
    parameters = list(parameters)
    shards = [None] * len(parameters)
    for i, p in enumerate(parameters):
        def cut(p):
            shards[i] = reduce_shard(p.grad, group)

        p.register_post_accumulate_grad_hook(cut)
    loss.backward()
    return shards
