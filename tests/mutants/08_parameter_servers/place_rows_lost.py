"""rows // servers rows for each server: the rest is lost.

fails: place/cover, place/limit, train/weights, train/limit
shows: are on no server
shows: First correct exercise 1
points: 15
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    pieces = []
    for variable, shape in enumerate(shapes):
        part = shape[0] // servers
        pieces += [Piece(variable, server * part, (server + 1) * part, server) for server in range(servers) if part]
    return pieces
