"""Events are texts with two letters, which unpack like a pair.

fails: orders/gpipe
shows: The text "F0" is not a pair.
points: 20
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of GPipe: [("F", 0), ...]."""
    return [f"F{m}" for m in range(micro_batches)] + [f"B{m}" for m in range(micro_batches)]


def one_f_one_b_order(rank: int, stages: int, micro_batches: int) -> list:
    """What this rank does in a step of 1F1B."""
    warm = min(stages - 1 - rank, micro_batches)
    order = [("F", m) for m in range(warm)]
    for m in range(micro_batches - warm):
        order += [("F", warm + m), ("B", m)]
    order += [("B", m) for m in range(micro_batches - warm, micro_batches)]
    return order
