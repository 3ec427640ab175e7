"""x may only have three dimensions.

fails: row/values, row/gradients, row/calls
shows: raised RuntimeError
points: 25
runs: row
"""
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    return reduce_from(torch.bmm(x, w.expand(len(x), -1, -1)), group) + b
