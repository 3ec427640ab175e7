"""All columns are gathered between the layers, and cut again.

fails: mlp/calls
shows: nothing has to be sent between the layers
points: 27
runs: mlp
"""
# %% grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    """tanh(tanh(x @ whole up + its bias) @ whole down + its bias), on all ranks.

    x: [..., in], the same on all ranks. up: [in, hidden], up_bias: [hidden],
    down: [hidden, out] of this rank. down_bias: [out], the same on all ranks.
    """
    hidden = torch.tanh(column(x, up, up_bias, group))
    parts = [torch.empty_like(hidden) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, hidden.detach(), group=group)
    parts[dist.get_rank(group)] = hidden
    hidden = torch.cat(parts, -1).chunk(len(parts), -1)[dist.get_rank(group)]
    return torch.tanh(row(hidden, down, down_bias, group))
