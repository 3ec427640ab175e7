"""The second layer is not told the group.

fails: mlp/values, mlp/gradients, mlp/calls
shows: Is `group` given to every call
points: 25
runs: mlp
"""
# %% grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    return torch.tanh(row(torch.tanh(column(x, up, up_bias, group)), down, down_bias))
