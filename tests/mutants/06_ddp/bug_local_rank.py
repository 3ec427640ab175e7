"""The sampler is given LOCAL_RANK: two ranks take the same rows, and half of the rows is never seen.

fails: bug/weights
shows: LOCAL_RANK starts again at 0 on each node
points: 18
"""
# %% grade_id="bug"
# %%px --setup
def training(ddp, x, y, epochs):
    sampler = DistributedSampler(range(len(x)), world_size, int(os.environ["LOCAL_RANK"]))
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(8):
            nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
