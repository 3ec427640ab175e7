"""The bias is added on each rank, so four times.

fails: in-split/values, pair/values
shows: The bias was added on each of the 4 ranks
shows: The bias of the second layer was added on each
points: 15
runs: in-split, pair
"""
# %% grade_id="in-split"
# %%px --setup
def in_split(x, weight, bias, c, stride=1, padding=0):
    return sum_of_parts(conv2d(x, weight, bias, stride, padding), c)
