"""x is used as it is.

fails: column/gradients, column/calls
shows: Where does x enter the cut part?
points: 26
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    return x @ w + b
