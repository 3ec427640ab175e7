"""Every rank goes through all the rows.

fails: epoch/once, epoch/steps
shows: an epoch is 4 epochs
shows: too many steps
points: 11
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // (rows_per_rank)
    mine = order[:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate * hvd.size()
