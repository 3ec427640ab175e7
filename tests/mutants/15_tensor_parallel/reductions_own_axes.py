"""The two gradients are exchanged.

fails: reductions/backward
shows: is cut along an axis over which your answer sums its gradient
points: 26
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

    if len(axes((*a, *b))) < sum(d in layout for d in {*a, *b}):
        raise ValueError(f"{a}, {b}: two dimensions on one axis of {layout}")
    return (axes(a) | axes(b)) - axes(out), axes(a) - axes(b), axes(b) - axes(a)
