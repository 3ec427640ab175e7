"""Micro-batches are texts.

fails: orders/gpipe
shows: not a list of pairs
points: 20
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    return [(kind, str(m)) for kind in "FB" for m in range(micro_batches)]


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    warm_up = min(micro_batches, stages - 1 - rank)
    order = [("F", m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        order += [("F", warm_up + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm_up, micro_batches)]
