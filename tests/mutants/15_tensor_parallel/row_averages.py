"""The parts are averaged.

fails: row/values, row/gradients
shows: This is the mean over the ranks
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
    return reduce_from(x @ w, group) / dist.get_world_size(group) + b
