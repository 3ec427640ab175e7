"""Only of the second product's first operand the gradient is counted, not of the third's.

fails: price/axes, price/numbers
shows: the ledger sees different all-reduces
points: 26
runs: price
"""
# %% grade_id="price"
def price(program, sizes, layout, mesh):
    def numbers(dims):
        return math.prod(sizes[d] // mesh.get(layout.get(d), 1) for d in dims)

    found = []
    for i, (a, b, out) in enumerate(program):
        forward, for_a, for_b = reductions(a, b, out, layout)
        sums = [(out, forward), (b, for_b)] + [(a, for_a)] * (i == 1)
        found += [(axis, numbers(dims)) for dims, axes in sums for axis in axes if mesh[axis] > 1]
    return found
