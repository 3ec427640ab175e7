"""Each rank convolves its own input channels only.

fails: out-split/values, out-split/gradients
shows: This is a grouped convolution, in which each rank convolves only its own input channels
points: 15
"""
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    own = shard(x.shape[1], c.rank, c.size)
    return join_parts(conv2d(copy_to_parts(x, c)[:, own], weight[:, own], bias, stride, padding), c)
