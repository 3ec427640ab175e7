"""The number of ranks is written into the program.

fails: epoch/once, epoch/steps, epoch/rate
shows: is not base_rate * 3
points: 10
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // (rows_per_rank * 4)
    mine = order[hvd.rank()::4][:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate * 4
