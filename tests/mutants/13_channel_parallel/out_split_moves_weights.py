"""Right values by the wrong algorithm: everyone gathers all weights, and computes the whole layer.

fails: out-split/bytes
shows: every rank holds and computes the whole layer
points: 16
"""
# %% grade_id="out-split"
# %%px --setup
def whole(tensor, c):
    gathered = torch.cat(functions.allgather(c, tensor))
    return gathered.detach() + (gathered - gathered.detach()) / c.size


def out_split(x, weight, bias, c, stride=1, padding=0):
    return conv2d(x, whole(weight, c), None if bias is None else whole(bias, c), stride, padding)
