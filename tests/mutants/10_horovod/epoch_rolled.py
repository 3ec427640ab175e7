"""The order depends on the epoch, and is not mixed: the rows are only rolled.

fails: epoch/once
shows: do not follow the order torch.randperm(n
points: 12
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.arange(n).roll(epoch)
    together = rows_per_rank * hvd.size()
    return [order[s * together:(s + 1) * together][hvd.rank()::hvd.size()] for s in range(n // together)], base_rate * hvd.size()
