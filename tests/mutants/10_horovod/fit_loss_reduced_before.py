"""The loss is all-reduced before backward, whose backward sums once more.

fails: fit/four, fit/three
shows: Or was the loss all-reduced before backward?
points: 10
"""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    n = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum).item()
    optimiser = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate), named_parameters=model.named_parameters(), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        loss = cross_entropy(model(x), y, reduction="sum") / n
        loss = hvd.allreduce(loss, op=hvd.Sum)
        loss.backward()
        optimiser.step()
