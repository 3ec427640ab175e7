"""The last layers are in no stage.

fails: cut/blocks, cut/dearest
shows: do not hold each layer once
points: 19
"""
# %% grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """The layers of each stage, as slices: [slice(0, 3), slice(3, 4), ...].

    Raises ValueError if there are fewer layers than stages.
    """
    from itertools import combinations

    if len(costs) < stages:
        raise ValueError(f"{len(costs)} layers in {stages} stages: each stage needs a layer")

    def blocks(borders):
        return [slice(start, stop) for start, stop in zip((0, *borders), (*borders, len(costs) - 1))]

    ways = map(blocks, combinations(range(1, len(costs)), stages - 1))
    return min(ways, key=lambda way: max(sum(costs[block]) for block in way))
