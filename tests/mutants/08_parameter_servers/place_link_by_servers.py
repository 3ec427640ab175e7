"""link_bytes is divided by the servers, so more of them would be needed than there are.

fails: place/cover, place/limit
shows: A piece is given to a server that does not exist
points: 18
runs: place
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    room = link_bytes // servers
    pieces, server, free = [], 0, room
    for variable, shape in enumerate(shapes):
        row_bytes, start = 8 * prod(shape[1:]), 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes)
            if stop == start:
                server, free = server + 1, room
                continue
            pieces.append(Piece(variable, start, stop, server))
            free -= (stop - start) * row_bytes
            start = stop
    return pieces
