"""Right values by the wrong algorithm: everyone gathers the whole input and the whole weight.

fails: in-split/bytes, pair/bytes
shows: If the ranks gather the whole input or the whole weight
points: 15
runs: in-split, pair
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    y = conv2d(torch.cat(functions.allgather(c, x), 1), torch.cat(functions.allgather(c, weight), 1), None, stride, padding)
    y = y.detach() + (y - y.detach()) / c.size
    return y if bias is None else y + bias[:, None, None]
