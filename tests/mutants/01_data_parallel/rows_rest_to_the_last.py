"""The last rank takes the rest: everyone waits for it.

fails: rows/even
shows: the first n % world_size ranks take one row more
points: 12
runs: rows
"""
# %% grade_id="rows"
# %%px --setup
def rows_of(n, rank, world_size):
    share = n // world_size
    return slice(rank * share, n if rank == world_size - 1 else (rank + 1) * share)
