"""Equal numbers of layers.

fails: cut/dearest
shows: blocks with equal numbers of layers
points: 20
"""
# %% grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """The layers of each stage, as slices: [slice(0, 3), slice(3, 4), ...].

    Raises ValueError if there are fewer layers than stages.
    """
    if len(costs) < stages:
        raise ValueError("each stage needs a layer")
    n = len(costs)
    return [slice(n * i // stages, n * (i + 1) // stages) for i in range(stages)]
