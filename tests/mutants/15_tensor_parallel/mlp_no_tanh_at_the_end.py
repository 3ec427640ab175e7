"""The second tanh is missing.

fails: mlp/values, mlp/gradients
shows: The tanh after the second layer is missing
points: 26
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
    return row(hidden, down, down_bias, group)
