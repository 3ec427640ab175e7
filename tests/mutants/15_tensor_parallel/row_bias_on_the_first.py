"""Only the first rank adds the bias, before the sum.

fails: row/gradients
shows: Every rank holds b and trains it
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
    part = x @ w
    if dist.get_rank(group) == 0:
        part = part + b
    return reduce_from(part, group)
