"""The last row of a piece is given as its stop.

fails: place/cover, place/limit
shows: Since the last row of a piece is stop - 1
points: 18
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
            stop = min(shape[0], start + free // row_bytes)
            if stop == start:
                server, free = server + 1, room
                continue
            pieces.append(Piece(variable, start, stop - 1, server))
            free -= (stop - start) * row_bytes
            start = stop
    return pieces
