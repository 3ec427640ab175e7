"""Split: the colleague's function as it is, layers dealt one by one and all of backward in one place.

fails: split/placement, split/gradients
shows: every layer still runs where it ran there
points: 10
runs: split
"""
# %% grade_id="split"
split_gradients = faulty_gradients
