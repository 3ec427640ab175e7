"""Where nothing is left over, the last step is lost.

fails: epoch/once, epoch/steps
shows: the last one counts too
points: 11
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    together, first = rows_per_rank * hvd.size(), rows_per_rank * hvd.rank()
    return [order[i + first:i + first + rows_per_rank] for i in range(0, n - together, together)], base_rate * hvd.size()
