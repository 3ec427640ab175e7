"""A drop counts only after its epoch.

fails: schedule/drops
shows: it counts from its epoch on
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch > drop for drop in drops)
