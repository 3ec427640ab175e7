"""Rounded up, so that the last ranks get less or nothing.

fails: rows/even
shows: rounded up on every rank
points: 12
runs: rows
"""
# %% grade_id="rows"
# %%px --setup
def rows_of(n, rank, world_size):
    share = -(-n // world_size)
    return slice(min(rank * share, n), min((rank + 1) * share, n))
