"""n // world_size rows for each rank: the rest belongs to nobody.

fails: rows/cover, rows/even
shows: belong to none of the 4 ranks
points: 11
runs: rows
"""
# %% grade_id="rows"
# %%px --setup
def rows_of(n, rank, world_size):
    share = n // world_size
    return slice(rank * share, (rank + 1) * share)
