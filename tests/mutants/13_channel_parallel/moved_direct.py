"""A sum in which each rank would send its whole tensor to all others.

fails: moved/bytes
shows: c.allreduce sends less
points: 16
"""
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way, x, weight, y, size):
    def joined(shape):
        return (size - 1) * 4 * math.prod(shape)

    def summed(shape):
        return size * joined(shape)

    return {"out": joined(y) + summed(x), "in": summed(y), "pair": summed(y) + summed(x), "data": summed(weight)}[way]


def largest_side(batch, c_in, c_out, kernel):
    return math.isqrt(c_in * kernel * kernel // batch)
