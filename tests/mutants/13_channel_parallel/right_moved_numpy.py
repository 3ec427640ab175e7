"""Right: bytes by NumPy, whose numbers are no ints, and the side by trying."""
# %% grade_id="moved"
# %%px
def moved_bytes(way, x, weight, y, size):
    import numpy as np
    n = np.int64(size - 1)
    px, pw, py = np.prod(x), np.prod(weight), np.prod(y)
    return 4 * n * {"out": py + 2 * px, "in": 2 * py, "pair": 2 * (py + px), "data": 2 * pw}[way]

def largest_side(batch, c_in, c_out, kernel):
    side = 0
    while moved_bytes("in", (batch, c_in, side + 1, side + 1), (c_out, c_in, kernel, kernel), (batch, c_out, side + 1, side + 1), 4) <= moved_bytes(
            "data", (batch, c_in, side, side), (c_out, c_in, kernel, kernel), (batch, c_out, side, side), 4):
        side += 1
    return side
