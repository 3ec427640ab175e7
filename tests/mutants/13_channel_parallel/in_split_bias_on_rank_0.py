"""Only rank 0 adds the bias, so the others do not train it.

fails: in-split/gradients, pair/gradients
shows: The bias has no gradient on this rank
points: 15
runs: in-split, pair
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    return sum_of_parts(conv2d(x, weight, bias if c.rank == 0 else None, stride, padding), c)
