"""rows_per_rank is taken for the rows of all ranks.

fails: epoch/once, epoch/steps
shows: rows on every rank
points: 11
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // rows_per_rank
    return [rows[hvd.rank()::hvd.size()] for rows in order[:steps * rows_per_rank].split(rows_per_rank)], base_rate * hvd.size()
