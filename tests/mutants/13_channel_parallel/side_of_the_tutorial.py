"""The side at which the tutorial's lines cross, where the in split joins x's gradient.

fails: moved/side
shows: at which the tutorial's lines cross
points: 16
runs: moved
"""
# %% grade_id="moved"
# %%px --setup
def moved_bytes(way: str, x: tuple, weight: tuple, y: tuple, size: int) -> int:
    join = lambda s: (size - 1) * 4 * math.prod(s)
    return {"out": join(y) + 2 * join(x), "in": 2 * join(y), "pair": 2 * join(y) + 2 * join(x), "data": 2 * join(weight)}[way]

def largest_side(batch, c_in, c_out, kernel):
    return math.isqrt(2 * c_out * c_in * kernel ** 2 // (batch * (2 * c_out + c_in)))
