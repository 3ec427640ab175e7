"""The warm-up begins at zero.

fails: schedule/warm-up
shows: begins at zero here
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return full * epoch / warm_up
    return full / drop_by ** sum(epoch >= drop for drop in drops)
