"""The epoch is cut to a whole number before it is compared: a drop in the middle of an epoch comes late.

fails: schedule/drops
shows: epochs need not be whole
points: 17
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(int(epoch) >= drop for drop in drops)
