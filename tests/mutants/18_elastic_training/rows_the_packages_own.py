"""The rows are those of the package's own training.

fails: rows/shares, rows/world, rows/epoch
shows: this is the package's own answer
points: 23
runs: rows
"""
# %% grade_id="rows"
from manyhands.elastic.job import endless


def rows(seen, batch, rank, world, images, seed):
    return endless(seen, batch, images, seed)[rank::world]
