"""The rule is not looked at.

fails: schedule/scaling, schedule/warm-up, schedule/drops
shows: This is the other rule. Here the rule is square root
points: 15
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * k
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch >= drop for drop in drops)
