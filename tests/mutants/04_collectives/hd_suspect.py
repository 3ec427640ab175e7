"""The suspect as it is: both bugs are in it.

fails: halving/values, halving/bytes
shows: Two partners have kept the *same* half
shows: half as many bytes again
points: 14
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    suspect_all_reduce(x, group)
