"""A dimension that both operands have counts as two, so that layouts that are possible are refused.

fails: reductions/forward, reductions/backward, reductions/refused
shows: no two dimensions of this product are on one axis
points: 24
runs: reductions
"""
# %% grade_id="reductions"
def reductions(a, b, out, layout):
    def axes(dims):
        return {layout[d] for d in dims if d in layout}

    if len(axes((*a, *b))) < sum(d in layout for d in (*a, *b)):
        raise ValueError("two dimensions on one axis")
    return (axes(a) | axes(b)) - axes(out), axes(b) - axes(a), axes(a) - axes(b)
