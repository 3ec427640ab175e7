"""The dearest layers first: blocks that are no neighbours.

fails: cut/blocks, cut/dearest
shows: do not hold each layer once
points: 19
"""
# %% grade_id="cut"
def cut(costs: list, stages: int) -> list:
    """The layers of each stage, as slices: [slice(0, 3), slice(3, 4), ...].

    Raises ValueError if there are fewer layers than stages.
    """
    if len(costs) < stages:
        raise ValueError("each stage needs a layer")
    blocks = [[] for _ in range(stages)]
    for layer in sorted(range(len(costs)), key=lambda layer: -costs[layer]):
        min(blocks, key=lambda block: sum(costs[i] for i in block)).append(layer)
    return [slice(min(block), max(block) + 1) for block in blocks]
