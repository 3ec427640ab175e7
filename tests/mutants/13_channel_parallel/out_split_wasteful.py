"""Right values by the tutorial's wasteful way: the gradient of the output travels, and is divided by the number of ranks.

fails: out-split/bytes
shows: The gradient of the output need not travel
points: 16
runs: out-split
"""
# %% grade_id="out-split"
# %%px --setup
def out_split(x, weight, bias, c, stride=1, padding=0):
    parts = functions.allgather(c, conv2d(copy_to_parts(x, c), weight, bias, stride, padding))
    y = torch.cat(parts, dim=1)
    return y / c.size + (y - y / c.size).detach()
