"""One stage after the other is filled up to the mean.

fails: cut/dearest
shows: fills one stage after the other
points: 20
"""
# %% grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """The layers of each stage, as slices: [slice(0, 3), slice(3, 4), ...].

    Raises ValueError if there are fewer layers than stages.
    """
    if len(costs) < stages:
        raise ValueError("each stage needs a layer")
    borders, mean = [0], sum(costs) / stages
    for stage in range(stages - 1):
        stop = borders[-1] + 1
        while stop < len(costs) - (stages - stage - 1) and sum(costs[borders[-1]:stop + 1]) <= mean:
            stop += 1
        borders.append(stop)
    return [slice(a, b) for a, b in zip(borders, [*borders[1:], len(costs)])]
