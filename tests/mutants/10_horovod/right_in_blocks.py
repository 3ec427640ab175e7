"""Right: the rows of a step lie side by side in the order, the losses are weighted before Horovod averages, and a table names the edit."""
# %% grade_id="diagnose"
def diagnose(symptoms):
    table = [("start", symptoms["apart_at_start"] > 1e-6), ("gradients", symptoms["apart_at_end"] > 1e-6),
             ("rows", symptoms["rows_counted"] > symptoms["rows_there"]), ("files", symptoms["writers"] != 1), ("nothing", True)]
    return next(name for name, there in table if there)

# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    n = sum(hvd.allgather_object(len(x)))
    optimiser = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate), named_parameters=model.named_parameters())
    for step in range(steps):
        optimiser.zero_grad()
        (cross_entropy(model(x), y) * len(x) * hvd.size() / n).backward()
        optimiser.step()

# %% grade_id="epoch"
# %%px
def epoch_of(n, rows_per_rank, epoch, base_rate):
    order, whole = torch.randperm(n, generator=torch.Generator().manual_seed(epoch)), rows_per_rank * hvd.size()
    return [order[first:first + whole].tensor_split(hvd.size())[hvd.rank()] for first in range(0, n - whole + 1, whole)], base_rate * hvd.size()
