"""The ring of exercise 4 in its place.

fails: halving/bytes
shows: in another number of rounds
points: 16
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    ring_all_reduce(x, group)
