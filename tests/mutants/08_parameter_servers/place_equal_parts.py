"""Every variable in equal parts; where rows do not divide, the first servers get one more, of every variable.

fails: place/limit
shows: cut into equal parts
points: 19
runs: place
"""
# %% grade_id="place"
# %%px --setup
def place(shapes, workers, servers, link_bytes):
    pieces = []
    for variable, shape in enumerate(shapes):
        start = 0
        for server in range(servers):
            stop = start + shape[0] // servers + (server < shape[0] % servers)
            if stop > start:
                pieces.append(Piece(variable, start, stop, server))
            start = stop
    return pieces
