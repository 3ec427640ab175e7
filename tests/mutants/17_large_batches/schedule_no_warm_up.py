"""There is no warm-up.

fails: schedule/warm-up
shows: This is already the full rate
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    return full / drop_by ** sum(epoch >= drop for drop in drops)
