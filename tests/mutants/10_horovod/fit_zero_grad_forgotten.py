"""Old gradients are never emptied.

fails: fit/four, fit/three
shows: were summed over the ranks again
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum)
    count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum)
    for step in range(steps):
        (cross_entropy(model(x), y, reduction="sum") / count).backward()
        optimiser.step()
