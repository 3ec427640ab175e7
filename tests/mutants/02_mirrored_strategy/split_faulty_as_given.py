"""Split: the colleague's function as it is, layers dealt one by one and all of backward in one place.

fails: split/placement
shows: a tape for each layer
points: 11
runs: split
"""
# %% grade_id="split"
split_gradients = faulty_gradients
