"""The package's barrier, imported, under another class.

fails: barrier/lockstep, barrier/bound, barrier/leave
shows: The package's barrier is closed in this check
points: 13
"""
# %% grade_id="barrier"
# %%px --setup
from manyhands.simulate import asynchrony

class Barrier(asynchrony.Barrier):
    pass
