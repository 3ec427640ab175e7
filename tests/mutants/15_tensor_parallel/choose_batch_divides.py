"""Only of the weights' dimensions it is asked whether they divide.

fails: choose/fits, choose/cheapest
shows: a size cannot be divided
points: 26
runs: choose
"""
# %% grade_id="choose"
def choose(program: list, sizes: dict, mesh: dict, memory_bytes: int) -> dict:
    """The layout, {dimension: axis}, that sends least among those that fit."""
    best = None
    for axes in itertools.product([None, *mesh], repeat=len(sizes)):
        layout = {d: axis for d, axis in zip(sizes, axes) if axis}
        if any(sizes[d] % mesh[axis] for d, axis in layout.items() if d != program[0][0][0]):
            continue
        piece = {d: sizes[d] // mesh[layout[d]] if d in layout else sizes[d] for d in sizes}

        def numbers(dims):
            return math.prod(piece[d] for d in dims)

        held = 4 * numbers(program[0][0]) + sum(
            4 * (4 * numbers(b) + numbers(out)) for _, b, out in program)
        try:
            sums = price(program, sizes, layout, mesh)
        except ValueError:
            continue
        sent = sum(2 * (mesh[axis] - 1) / mesh[axis] * n for axis, n in sums)
        if held <= memory_bytes and (best is None or sent < best[0]):
            best = sent, layout
    return best[1]
