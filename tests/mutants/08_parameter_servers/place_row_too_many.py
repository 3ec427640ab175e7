"""What is left is rounded up: the last row of each server does not fit.

fails: place/limit
shows: is a row too many, so round down
points: 19
runs: place
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    room = link_bytes // workers
    pieces, server, free = [], 0, room
    for variable, shape in enumerate(shapes):
        row_bytes, start = 8 * prod(shape[1:]), 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes + 1)
            if stop == start:
                server, free = server + 1, room
                continue
            pieces.append(Piece(variable, start, stop, server))
            free -= (stop - start) * row_bytes
            start = stop
    return pieces
