"""The order is drawn with the same seed in every epoch.

fails: epoch/once
shows: the same in every epoch
points: 12
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    steps = n // (rows_per_rank * hvd.size())
    mine = order[hvd.rank()::hvd.size()][:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate * hvd.size()
