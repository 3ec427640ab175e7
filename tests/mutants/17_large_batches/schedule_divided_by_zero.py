"""Without a warm-up there is a division by zero.

fails: schedule/scaling, schedule/warm-up, schedule/drops
shows: ZeroDivisionError
shows: warm_up=0
points: 15
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    part = min(1, epoch / warm_up)
    return (base_rate + (full - base_rate) * part) / drop_by ** sum(epoch >= drop for drop in drops)
