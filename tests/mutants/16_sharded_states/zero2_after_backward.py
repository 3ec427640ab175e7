"""Gradients are cut when backward has ended: all of them have been whole at once.

fails: zero2/alive
shows: whole gradients were in memory while backward was running
points: 27
"""
# %% grade_id="zero2"
# %%px --setup
def zero2_backward(loss, parameters, group=None) -> list:
    parameters = list(parameters)
    loss.backward()
    shards = [reduce_shard(p.grad, group) for p in parameters]
    for p in parameters:
        p.grad = None
    return shards
