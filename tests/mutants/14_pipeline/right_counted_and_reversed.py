"""GPipe's backwards in reverse, on all ranks; 1F1B by counting what is under way; the bubble from the times of a step."""
# %% grade_id="bubble"
def bubble(stages, micro_batches, chunks=1):
    work = chunks * micro_batches * (1 + 2)
    return 1 - work / (work + (stages - 1) * (1 + 2))
# %% grade_id="orders"
def gpipe_order(rank, stages, micro_batches):
    forward = [("F", m) for m in range(micro_batches)]
    return forward + [("B", m) for _, m in reversed(forward)]


def one_f_one_b_order(rank, stages, micro_batches):
    order, forward, backward = [], 0, 0
    while backward < micro_batches:
        if forward < micro_batches and forward - backward < stages - rank:
            order.append(("F", forward))
            forward += 1
        else:
            order.append(("B", backward))
            backward += 1
    return order
