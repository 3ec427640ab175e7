"""g in the place of f.

fails: column/values, column/gradients, column/calls
shows: all of them have the same x already
points: 25
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    return reduce_from(x, group) @ w + b
