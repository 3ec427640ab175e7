"""The columns are summed over the ranks.

fails: column/values, column/calls
shows: nothing must be added up
points: 26
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    return reduce_from(copy_to(x, group) @ w + b, group)
