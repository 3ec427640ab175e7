"""The side at which both move the same bytes is left out: fewer, where no more is asked.

fails: moved/side
shows: a side at which both move the same number of bytes counts
points: 16
"""
# %% grade_id="moved"
# %%px
def moved_bytes(way, x, weight, y, size):
    x, weight, y = (4 * (size - 1) * math.prod(s) for s in (x, weight, y))
    return {"out": y + 2 * x, "in": 2 * y, "pair": 2 * y + 2 * x, "data": 2 * weight}[way]

def largest_side(batch, c_in, c_out, kernel):
    return math.isqrt((c_in * kernel * kernel - 1) // batch)
