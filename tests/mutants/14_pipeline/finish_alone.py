"""Each rank by itself: nobody waits for a neighbour.

fails: finish/chain, finish/messages, finish/stuck
shows: cannot begin before that result has arrived
points: 18
runs: finish
"""
# %% grade_id="finish"
def finish_times(orders, forward_s, backward_s, message_s=0.0):
    times = []
    for rank, order in enumerate(orders):
        now, row = 0.0, []
        for kind, m in order:
            now += (forward_s if kind == "F" else backward_s)[rank]
            row.append(now)
        times.append(row)
    return times
