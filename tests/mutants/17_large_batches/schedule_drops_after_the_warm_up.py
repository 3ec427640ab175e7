"""The drops are counted from the end of the warm-up.

fails: schedule/drops
shows: counted from the end of the warm-up
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch - warm_up >= drop for drop in drops)
