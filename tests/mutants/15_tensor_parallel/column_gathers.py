"""The columns are put together.

fails: column/values, column/gradients, column/calls
shows: This is the whole output
points: 25
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    """This rank's columns of x @ whole weight + whole bias.

    x: [..., in], the same on all ranks. w: [in, columns], b: [columns] of this rank.
    """
    y = copy_to(x, group) @ w + b
    parts = [None] * dist.get_world_size(group)
    dist.all_gather_object(parts, y.detach().cpu(), group=group)
    parts[dist.get_rank(group)] = y
    return torch.cat([part.to(y.device) for part in parts], -1)
