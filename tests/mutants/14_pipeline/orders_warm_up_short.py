"""The warm-up is S - 2 - r forwards.

fails: orders/1f1b
shows: the step is longer than necessary
points: 20
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    return [("F", m) for m in range(micro_batches)] + [("B", m) for m in range(micro_batches)]


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    warm_up = max(0, min(micro_batches, stages - 2 - rank))
    order = [("F", m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        order += [("F", warm_up + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm_up, micro_batches)]
