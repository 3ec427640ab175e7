"""The layer has no operator before the convolution.

fails: out-split/gradients, out-split/bytes
shows: Send the input through copy_to_parts
shows: The input's gradients did not travel in backward
points: 15
"""
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    return join_parts(conv2d(x, weight, bias, stride, padding), c)
