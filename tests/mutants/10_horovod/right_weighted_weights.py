"""Right: each rank takes a step of its own, then the weights are averaged, each rank's weighted with its rows: for plain SGD that is the same."""
# %% grade_id="fit"
# %%px
def fit(model, x, y, rate, steps):
    n = hvd.allreduce(torch.tensor(float(len(x))), op=hvd.Sum).item()
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for step in range(steps):
        optimiser.zero_grad()
        cross_entropy(model(x), y).backward()
        optimiser.step()
        for name, p in model.named_parameters():
            p.data = hvd.allreduce(p.data * (len(x) / n), op=hvd.Sum, name=name)
