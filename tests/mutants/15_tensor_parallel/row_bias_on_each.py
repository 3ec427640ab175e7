"""Each rank adds the bias before the sum.

fails: row/values
shows: because every rank adds it before the sum
points: 27
runs: row
"""
# %% grade_id="row"
# %%px --setup
def row(x, w, b, group=None):
    """whole x @ whole weight + b, on all ranks.

    x: [..., rows], the columns of this rank. w: [rows, out] of this rank. b: [out], the
    same on all ranks.
    """
    return reduce_from(x @ w + b, group)
