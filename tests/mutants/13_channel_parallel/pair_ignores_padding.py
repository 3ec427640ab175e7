"""The pair takes a padding of 1, whatever it was given.

fails: pair/values, pair/gradients, pair/bytes
shows: Is `padding` given to both convolutions?
points: 14
runs: pair
"""
# %% grade_id="pair"
# %%px --setup
def pair(x, first, second, c, padding=1):
    hidden = relu(conv2d(copy_to_parts(x, c), *first, padding=1))
    return in_split(hidden, *second, c, padding=1)
