"""Variables are dealt in turn, as TensorFlow does it: by number and not by bytes.

fails: place/limit, train/limit
shows: The variables are assigned in turn
shows: carried more than it may
points: 17
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    return [Piece(variable, 0, shape[0], variable % servers) for variable, shape in enumerate(shapes)]
