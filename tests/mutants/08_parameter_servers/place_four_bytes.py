"""Each number is taken for a float32.

fails: place/limit
shows: were 4 counted?
points: 19
runs: place
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    room = link_bytes // workers
    pieces, server, free = [], 0, room
    for variable, shape in enumerate(shapes):
        row_bytes, start = 4 * prod(shape[1:]), 0
        while start < shape[0]:
            stop = min(shape[0], start + free // row_bytes)
            if stop == start:
                server, free = server + 1, room
                continue
            pieces.append(Piece(variable, start, stop, server))
            free -= (stop - start) * row_bytes
            start = stop
    return pieces
