"""Two dimensions on one axis are accepted.

fails: reductions/refused
shows: Raise a ValueError, and look at all dimensions
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

    return (axes(a) | axes(b)) - axes(out), axes(b) - axes(a), axes(a) - axes(b)
