"""Each rank adds the second bias to its part, so the sum has it once for each rank.

fails: mlp/values, mlp/gradients
shows: 
points: 26
runs: mlp
"""
# %% grade_id="mlp"
# %%px --setup
def mlp(x, up, up_bias, down, down_bias, group=None):
    hidden = torch.tanh(column(x, up, up_bias, group))
    return torch.tanh(reduce_from(hidden @ down + down_bias, group))
