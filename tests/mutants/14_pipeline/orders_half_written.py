"""GPipe is there, 1F1B not yet.

fails: orders/1f1b, orders/memory
shows: one_f_one_b_order is not written yet
points: 18
runs: orders
"""
# %% grade_id="orders"
def gpipe_order(rank, stages, micro_batches):
    return [(kind, m) for kind in "FB" for m in range(micro_batches)]


def one_f_one_b_order(rank, stages, micro_batches):
    raise NotImplementedError()
