"""Each rank trains alone, and the weights are averaged at the end.

fails: fit/four, fit/three
shows: not the weights that a single process computes
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()
    for parameter in model.parameters():
        parameter.data = hvd.allreduce(parameter.data)
