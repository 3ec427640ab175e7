"""The channels are joined between the layers, and cut again.

fails: pair/bytes
shows: no join between them
points: 16
runs: pair
"""
# %% grade_id="pair"
# %%px --setup
def pair(x, first, second, c, padding=1):
    hidden = relu(out_split(x, *first, c, padding=padding))
    return in_split(hidden[:, shard(hidden.shape[1], c.rank, c.size)], *second, c, padding=padding)
