"""An operator too many: the gradient of x, complete on its rank, is summed with those of other channels.

fails: in-split/gradients, in-split/bytes, pair/gradients, pair/bytes
shows: is too large by a factor of 4
shows: Nothing needs to travel in backward
points: 13
runs: in-split, pair
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    y = sum_of_parts(conv2d(x, weight, None, stride, padding), c)
    y = copy_to_parts(y, c)
    return y if bias is None else y + bias[:, None, None]
