"""The return is forgotten.

fails: rows/cover, rows/even
shows: The function returns nothing
points: 11
runs: rows
"""
# %% grade_id="rows"
# %%px --setup
def rows_of(n, rank, world_size):
    share, extra = divmod(n, world_size)
    start = rank * share + min(rank, extra)
    slice(start, start + share + (rank < extra))
