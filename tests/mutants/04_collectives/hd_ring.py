"""The ring of exercise 4 in its place.

fails: halving/bytes
shows: but the number of rounds is not
points: 16
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    ring_all_reduce(x, group)
