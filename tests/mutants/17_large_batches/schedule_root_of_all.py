"""The root of base rate times k.

fails: schedule/scaling, schedule/warm-up, schedule/drops
shows: the rule is base rate times the root of k
points: 15
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * k if rule == "linear" else (base_rate * k) ** 0.5
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by ** sum(epoch >= drop for drop in drops)
