"""Two dimensions on one axis are noticed within one tensor only.

fails: reductions/refused
shows: look at all dimensions that a or b has
points: 27
runs: reductions
"""
# %% grade_id="reductions"
def reductions(a: tuple, b: tuple, out: tuple, layout: dict) -> tuple:
    """The axes to sum over: (forward, in the gradient of a, in the gradient of b), each a
    list or a set.

    a, b, out: names of dimensions, as ("batch", "in"). layout: {dimension: axis}.
    Raises ValueError if two dimensions of the product lie on one axis.
    """
    def axes(dims):
        return {layout[d] for d in dims if d in layout}

    for dims in (a, b):
        if len(axes(dims)) < sum(d in layout for d in dims):
            raise ValueError("two dimensions on one axis")
    return (axes(a) | axes(b)) - axes(out), axes(b) - axes(a), axes(a) - axes(b)
