"""Every rank takes the whole batch, and the mean of four equal gradients is right.

fails: bug/weights
shows: Ranks that all compute the whole batch need no other rank
points: 18
"""
# %% grade_id="bug"
# %%px --setup
def training(ddp, x, y, epochs):
    sampler = DistributedSampler(range(len(x)), 1, 0)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(32):
            nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
