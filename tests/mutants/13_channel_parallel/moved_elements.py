"""Numbers are counted, not bytes.

fails: moved/bytes
shows: Are these numbers, of 4 bytes each
points: 16
"""
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way, x, weight, y, size):
    def joined(shape):
        return (size - 1) * math.prod(shape)

    def summed(shape):
        return 2 * joined(shape)

    return {"out": joined(y) + summed(x), "in": summed(y), "pair": summed(y) + summed(x), "data": summed(weight)}[way]


def largest_side(batch, c_in, c_out, kernel):
    return math.isqrt(c_in * kernel * kernel // batch)
