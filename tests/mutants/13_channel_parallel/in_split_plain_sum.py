"""The sum is c.allreduce itself: autograd does not see it.

fails: in-split/values, in-split/gradients, in-split/bytes
shows: is outside the graph
shows: the output has no gradient function (see above)
points: 14
runs: in-split
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    y = c.allreduce(conv2d(x, weight, None, stride, padding))
    return y if bias is None else y + bias[:, None, None]
