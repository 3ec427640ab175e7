"""The rows are those of the package's own function.

fails: rows/cover, rows/even
shows: This is manyhands.data.shard, which the package has
points: 11
runs: rows
"""
# %% grade_id="rows"
# %%px --setup
from manyhands.data import shard as shard_of

def rows_of(n, rank, world_size):
    return shard_of(n, rank, world_size)
