"""No gradient is exchanged; the number of rows alone is.

fails: fit/four, fit/three
shows: no gradient has been exchanged
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
