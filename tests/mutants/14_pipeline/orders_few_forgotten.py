"""Fewer micro-batches than stages are forgotten: the warm-up names some that are not there.

fails: orders/1f1b, orders/memory
shows: with m from 0 to
points: 18
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    return [("F", m) for m in range(micro_batches)] + [("B", m) for m in range(micro_batches)]


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    warm_up = stages - 1 - rank
    order = [("F", m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        order += [("F", warm_up + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm_up, micro_batches)]
