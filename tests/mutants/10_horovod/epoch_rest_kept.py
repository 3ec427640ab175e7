"""What is left over makes one more step, smaller than the others.

fails: epoch/once, epoch/steps
shows: so leave out the remainder of
points: 11
"""
# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    return list(order[hvd.rank()::hvd.size()].split(rows_per_rank)), base_rate * hvd.size()
