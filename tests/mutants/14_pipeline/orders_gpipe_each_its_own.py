"""Every second rank does its backwards in reverse, and so waits for its neighbour.

fails: orders/gpipe
shows: all ranks take the micro-batches in the same order
points: 20
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    backward = [("B", m) for m in range(micro_batches)]
    return [("F", m) for m in range(micro_batches)] + (backward[::-1] if rank % 2 else backward)


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    warm_up = min(micro_batches, stages - 1 - rank)
    order = [("F", m) for m in range(warm_up)]
    for m in range(micro_batches - warm_up):
        order += [("F", warm_up + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm_up, micro_batches)]
