"""An epoch of no whole step is split too: split gives one part, which is empty.

fails: epoch/steps
shows: split of an empty tensor gives one empty part
points: 12
"""
# %% grade_id="epoch"
# %%px --setup
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(epoch))
    steps = n // (rows_per_rank * hvd.size())
    mine = order[hvd.rank()::hvd.size()]
    return list(mine[:steps * rows_per_rank].split(rows_per_rank)), base_rate * hvd.size()
