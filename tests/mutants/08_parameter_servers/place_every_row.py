"""Each row is a piece of its own, and goes to the server that has least.

fails: place/pieces
shows: each is a separate message
points: 20
runs: place
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    pieces, kept = [], [0] * servers
    for variable, shape in enumerate(shapes):
        for row in range(shape[0]):
            server = kept.index(min(kept))
            kept[server] += 8 * prod(shape[1:])
            pieces.append(Piece(variable, row, row + 1, server))
    return pieces
