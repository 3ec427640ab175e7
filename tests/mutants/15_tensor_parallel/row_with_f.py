"""f stands before the row layer, too: one all-reduce too many, and a wrong gradient of x.

fails: row/gradients, row/calls
shows: Nothing has to be sent in backward
points: 26
runs: row
"""
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    """whole x @ whole weight + b, on all ranks.

    x: [..., rows], the columns of this rank. w: [rows, out] of this rank. b: [out], the
    same on all ranks.
    """
    return reduce_from(copy_to(x, group) @ w, group) + b
