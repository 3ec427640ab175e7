"""stride and padding are forgotten.

fails: out-split/values, out-split/gradients, out-split/bytes
shows: Are stride and padding given to the convolution
points: 14
"""
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    return join_parts(conv2d(copy_to_parts(x, c), weight, bias), c)
