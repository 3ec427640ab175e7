"""The rate is multiplied by the number of ranks, though the batch is that of one process.

fails: fit/four, fit/three
shows: The steps are too large by a factor of 4. Was the rate multiplied by hvd.size(),
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    n = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum).item()
    optimiser = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate * hvd.size()), named_parameters=model.named_parameters(), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        (cross_entropy(model(x), y, reduction="sum") / n).backward()
        optimiser.step()
