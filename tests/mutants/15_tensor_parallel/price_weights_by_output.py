"""The gradient of a weight is summed with as many numbers as the output has.

fails: price/numbers
shows: the ledger sees all-reduces of different sizes
points: 27
runs: price
"""
# %% grade_id="price"
def price(program, sizes, layout, mesh):
    def numbers(dims):
        return math.prod(sizes[d] // mesh.get(layout.get(d), 1) for d in dims)

    found = []
    for i, (a, b, out) in enumerate(program):
        forward, for_a, for_b = reductions(a, b, out, layout)
        sums = [(out, forward), (out, for_b)] + [(a, for_a)] * (i > 0)
        found += [(axis, numbers(dims)) for dims, axes in sums for axis in axes if mesh[axis] > 1]
    return found
