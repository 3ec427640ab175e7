"""The gradients of the ranks' own means are averaged: Horovod's default, and wrong for uneven shards.

fails: fit/four, fit/three
shows: average of the ranks' means
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters())
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()
