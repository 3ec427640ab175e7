"""Drops that are past are taken out of the list that was given.

fails: schedule/scaling, schedule/warm-up, schedule/drops
shows: rate_at has changed `drops`
points: 15
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    while drops and epoch >= drops[0]:
        drops.pop(0)
        full /= drop_by
    return full
