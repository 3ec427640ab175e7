"""1F1B with GPipe's order: the same time, all micro-batches kept.

fails: orders/memory
shows: the order holds all of them at the same time
points: 19
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    return [("F", m) for m in range(micro_batches)] + [("B", m) for m in range(micro_batches)]


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    return gpipe_order(rank, stages, micro_batches)
