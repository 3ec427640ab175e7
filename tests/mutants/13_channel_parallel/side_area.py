"""The number of pixels in place of the side.

fails: moved/side
shows: the side is its root
points: 16
"""
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way, x, weight, y, size):
    def joined(shape):
        return (size - 1) * 4 * math.prod(shape)

    def summed(shape):
        return 2 * joined(shape)

    return {"out": joined(y) + summed(x), "in": summed(y), "pair": summed(y) + summed(x), "data": summed(weight)}[way]


def largest_side(batch, c_in, c_out, kernel):
    return c_in * kernel * kernel // batch
