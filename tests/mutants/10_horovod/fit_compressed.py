"""The gradients are compressed to float16.

fails: fit/four, fit/three
shows: right to only a few digits
points: 10
runs: fit
"""
# %% grade_id="fit"
# %%px --setup
def fit(model, x, y, rate, steps):
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    optimiser = hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum, compression=hvd.Compression.fp16)
    count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum)
    for step in range(steps):
        optimiser.zero_grad()
        (cross_entropy(model(x), y, reduction="sum") / count).backward()
        optimiser.step()
