"""Nothing is repaired.

fails: schedule/scaling, schedule/warm-up, schedule/drops
shows: This is the root of base rate times k
points: 15
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = (base_rate * k) ** (1 if rule == "linear" else 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * int(epoch) / warm_up
    return full / drop_by ** sum(epoch > drop for drop in drops)
