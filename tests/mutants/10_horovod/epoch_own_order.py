"""Each rank draws an order of its own.

fails: epoch/once
shows: draw the same order
points: 12
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n)
    steps = n // (rows_per_rank * hvd.size())
    mine = order[hvd.rank()::hvd.size()][:steps * rows_per_rank]
    return list(mine.view(steps, rows_per_rank)), base_rate * hvd.size()
