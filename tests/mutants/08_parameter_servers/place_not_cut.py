"""The largest variable first, to the server that has least: but whole.

fails: place/limit, train/limit
shows: it must be cut into pieces of rows
points: 17
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    pieces, kept = [], [0] * servers
    for variable in sorted(range(len(shapes)), key=lambda v: -prod(shapes[v])):
        server = kept.index(min(kept))
        kept[server] += 8 * prod(shapes[variable])
        pieces.append(Piece(variable, 0, shapes[variable][0], server))
    return pieces
