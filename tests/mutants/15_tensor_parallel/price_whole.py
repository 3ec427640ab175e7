"""The numbers of whole tensors.

fails: price/numbers
shows: a rank sums only its piece
points: 27
runs: price
"""
# %% grade_id="price"
def price(program: list, sizes: dict, layout: dict, mesh: dict) -> list:
    """[(axis, numbers), ...] of all all-reduces of a step, in any order.

    program: [(a, b, out), ...]. sizes: {dimension: size of the whole}.
    mesh: {axis: number of ranks along it}.
    """
    def numbers(dims):
        return math.prod(sizes[d]
                         for d in dims)

    found = []
    for i, (a, b, out) in enumerate(program):
        forward, for_a, for_b = reductions(a, b, out, layout)
        found += [(axis, numbers(out)) for axis in forward]
        found += [(axis, numbers(a)) for axis in for_a if i > 0]
        found += [(axis, numbers(b)) for axis in for_b]
    return [(axis, count) for axis, count in found if mesh[axis] > 1]
