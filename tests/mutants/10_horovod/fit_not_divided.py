"""The losses are added up, and never divided.

fails: fit/four, fit/three
shows: are added up but not divided
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y, reduction="sum").backward()
        optimiser.step()
