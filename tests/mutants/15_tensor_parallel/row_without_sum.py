"""The parts are not summed.

fails: row/values, row/calls
shows: The sum over the ranks is missing
shows: There is no all-reduce in forward
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
    return x @ w + b
