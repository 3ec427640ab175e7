"""Each rank's part of the mean is averaged over the ranks once more.

fails: fit/four, fit/three
shows: steps are too small by a factor of 4
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters())
    count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        (cross_entropy(model(x), y, reduction="sum") / count).backward()
        optimiser.step()
