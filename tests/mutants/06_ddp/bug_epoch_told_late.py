"""The epoch is told when its rows have been drawn.

fails: bug/weights
shows: It must know the epoch before it is asked for rows
points: 18
"""
# %% grade_id="bug"
# %%px --setup
def training(ddp, x, y, epochs):
    sampler = DistributedSampler(range(len(x)), world_size, rank)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        for rows in torch.tensor(list(sampler)).split(8):
            sampler.set_epoch(epoch)
            nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
