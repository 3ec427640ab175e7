"""Only the first drop counts.

fails: schedule/drops
shows: Only one drop counts
points: 17
runs: schedule
"""
# %% grade_id="schedule"
def rate_at(epoch, base_rate, k, rule, warm_up, drops, drop_by):
    full = base_rate * (k if rule == "linear" else k ** 0.5)
    if epoch < warm_up:
        return base_rate + (full - base_rate) * epoch / warm_up
    return full / drop_by if epoch >= drops[0] else full
