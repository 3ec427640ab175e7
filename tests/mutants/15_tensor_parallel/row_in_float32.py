"""The sum is taken in float32.

fails: row/values, row/gradients, row/calls
shows: the right numbers with too few digits
shows: shorter numbers (float32)
points: 25
runs: row
"""
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    """whole x @ whole weight + b, on all ranks.

    x: [..., rows], the columns of this rank. w: [rows, out] of this rank. b: [out], the
    same on all ranks.
    """
    return reduce_from((x @ w).float(), group).double() + b
