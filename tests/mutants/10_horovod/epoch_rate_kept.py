"""The rate is that of one process.

fails: epoch/rate
shows: multiply by hvd.size()
points: 12
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // (rows_per_rank * hvd.size())
    mine = order[hvd.rank()::hvd.size()][:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate
