"""Axes dimension by dimension; refusal by a counter; prices by recursion over options; None for what is not cut."""
# %% grade_id="reductions"
def reductions(a, b, out, layout):
    from collections import Counter

    at = lambda d: layout.get(d)
    if any(n > 1 for axis, n in Counter(map(at, dict.fromkeys(a + b))).items() if axis):
        raise ValueError("a diagonal")
    gone = [at(d) for d in dict.fromkeys(a + b) if d not in out and at(d)]
    return gone, [at(d) for d in b if d not in a and at(d)], tuple(at(d) for d in a if d not in b and at(d))
# %% grade_id="price"
def price(program, sizes, layout, mesh):
    local = {d: sizes[d] / mesh.get(layout.get(d), 1) for d in sizes}
    size = lambda dims: round(math.prod(map(local.get, dims)))
    for i in reversed(range(len(program))):
        first, second, third = program[i]
        sums = reductions(first, second, third, layout)
        for dims, axes in zip((third, first, second), sums):
            for axis in axes:
                if mesh[axis] != 1 and not (i == 0 and dims is first):
                    yield axis, size(dims)
# %% grade_id="choose"
def choose(program, sizes, mesh, memory_bytes):
    def held(layout):
        n = lambda dims: math.prod(sizes[d] // mesh.get(layout[d], 1) for d in dims)
        return 4 * n(program[0][0]) + sum(16 * n(b) + 4 * n(out) for _, b, out in program)

    found = []
    for axes in itertools.product([*mesh, None], repeat=len(sizes)):
        layout = dict(zip(sizes, axes))
        cut = {d: axis for d, axis in layout.items() if axis}
        try:
            assert all(sizes[d] % mesh[axis] == 0 for d, axis in cut.items())
            cost = sum(n * (1 - 1 / mesh[axis]) for axis, n in price(program, sizes, cut, mesh))
        except (ValueError, AssertionError):
            continue
        if held(layout) <= memory_bytes:
            found.append((cost, len(found), layout))
    return min(found)[2]
