"""The pair has no operator before its first layer.

fails: pair/gradients, pair/bytes
shows: Send the input through copy_to_parts
shows: The input's gradients did not travel in backward
points: 15
runs: pair
"""
# %% grade_id="pair"
# %%px --setup
def pair(x, first, second, c, padding=1):
    return in_split(relu(conv2d(x, *first, padding=padding)), *second, c, padding=padding)
