"""The epoch seeds torch's own generator: the order is right, and dropout draws the same on all ranks from then on.

fails: epoch/once
shows: torch's own generator has changed
points: 12
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    torch.manual_seed(epoch)
    order = torch.randperm(n)
    together = rows_per_rank * hvd.size()
    return [order[s * together:(s + 1) * together][hvd.rank()::hvd.size()] for s in range(n // together)], base_rate * hvd.size()
