"""The base rate all through the warm-up, and then a jump.

fails: schedule/warm-up
shows: the rate jumps to its full value
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate
    return full / drop_by ** sum(epoch >= drop for drop in drops)
