"""Each rank adds its share of the bias before the sum.

fails: row/gradients
shows: The gradient of b is
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
    return reduce_from(x @ w + b / dist.get_world_size(group), group)
