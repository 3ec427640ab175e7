"""x may only have three dimensions.

fails: column/values, column/gradients, column/calls
shows: raised RuntimeError
points: 25
runs: column
"""
# %% grade_id="column"
# %%px --setup
def column(x, w, b, group=None):
    return torch.einsum("abi,io->abo", copy_to(x, group), w) + b
