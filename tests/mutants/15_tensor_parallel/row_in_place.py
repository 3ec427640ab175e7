"""The product is summed in place, outside of autograd.

fails: row/gradients
shows: is outside the graph
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
    with torch.no_grad():
        y = x @ w
        dist.all_reduce(y, group=group)
        return y + b
