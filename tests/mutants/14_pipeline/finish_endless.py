"""Orders that can never be done are tried for ever.

fails: finish/stuck
shows: If no rank can go on in a whole round
points: 20
runs: finish
"""
# %% grade_id="finish"
def finish_times(orders: list, forward_s: list, backward_s: list, message_s: float = 0.0) -> list:
    """For each rank, in its order, the time at which each event ends; the step begins at 0.

    orders: of all ranks, as above. forward_s, backward_s: seconds of one micro-batch on each stage.
    Raises ValueError if the orders can never be done.
    """
    ended, times = {}, [[] for _ in orders]
    while any(len(done) < len(order) for done, order in zip(times, orders)):
        before = len(ended)
        for rank, order in enumerate(orders):
            while len(times[rank]) < len(order):
                kind, m = order[len(times[rank])]
                source = (kind, m, rank - 1 if kind == "F" else rank + 1)
                outer = rank == (0 if kind == "F" else len(orders) - 1)
                if not outer and source not in ended or kind == "B" and ("F", m, rank) not in ended:
                    break
                start = times[rank][-1] if times[rank] else 0.0
                if not outer:
                    start = max(start, ended[source] + message_s)
                ended[kind, m, rank] = start + (forward_s if kind == "F" else backward_s)[rank]
                times[rank].append(ended[kind, m, rank])
    return times
