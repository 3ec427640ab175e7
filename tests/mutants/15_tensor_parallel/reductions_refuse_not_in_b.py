"""Two dimensions of b on one axis are not refused, only two of a, or one of each.

fails: reductions/refused, choose/fits, choose/cheapest
shows: two dimensions of the product are on one axis, so ranks would compute only blocks
points: 25
"""
# %% grade_id="reductions"
def reductions(a, b, out, layout):
    def axes(dims):
        return {layout[d] for d in dims if d in layout}

    if len(axes(a)) < sum(d in layout for d in a) or axes(set(a) - set(b)) & axes(set(b) - set(a)):
        raise ValueError("two dimensions on one axis")
    return (axes(a) | axes(b)) - axes(out), axes(b) - axes(a), axes(a) - axes(b)
