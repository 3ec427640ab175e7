"""The outputs are not joined.

fails: out-split/values, out-split/gradients, out-split/bytes
shows: without the parts of the other ranks
points: 14
"""
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    return conv2d(copy_to_parts(x, c), weight, bias, stride, padding)
