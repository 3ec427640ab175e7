"""w enters by f, too: its gradient is summed.

fails: column/gradients, column/calls
shows: w and b are this rank's own
points: 26
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    return copy_to(x, group) @ copy_to(w, group) + b
