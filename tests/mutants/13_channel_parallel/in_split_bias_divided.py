"""The bias is divided among the ranks: right output, and a gradient that is too small.

fails: in-split/gradients, pair/gradients
shows: The gradient of the bias is too small by a factor of 4
points: 15
runs: in-split, pair
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    return sum_of_parts(conv2d(x, weight, None if bias is None else bias / c.size, stride, padding), c)
