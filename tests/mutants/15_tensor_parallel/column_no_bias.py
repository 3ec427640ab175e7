"""The bias is forgotten.

fails: column/values, column/gradients
shows: it holds the numbers of this rank's columns
shows: b has no gradient
points: 26
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    return copy_to(x, group) @ w
