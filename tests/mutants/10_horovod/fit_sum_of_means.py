"""The gradients of the ranks' own means are added up.

fails: fit/four, fit/three
shows: steps are too large by a factor of about 4
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()
