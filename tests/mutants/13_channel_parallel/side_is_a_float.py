"""The side is the right number, and no whole one.

fails: moved/side
shows: A side is a whole number
points: 16
runs: moved
"""
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way: str, x: tuple, weight: tuple, y: tuple, size: int) -> int:
    """Bytes that all `size` ranks together send in one step. x, weight, y: shapes of the
    whole tensors."""
    def joined(shape):
        return (size - 1) * 4 * math.prod(shape)

    def summed(shape):
        return 2 * joined(shape)

    return {"out": joined(y) + summed(x), "in": summed(y), "pair": summed(y) + summed(x),
            "data": summed(weight)}[way]


def largest_side(batch: int, c_in: int, c_out: int, kernel: int) -> int:
    """The largest side of an image for which the in split moves no more bytes than data
    parallelism."""
    return (c_in * kernel * kernel // batch) ** 0.5 // 1
