"""The forward pass goes round DDP: nothing is averaged.

fails: bug/averaged, bug/weights
shows: Only DDP's own forward prepares the backward pass for sending
points: 17
"""
# %% grade_id="bug"
# %%px --setup
def training(ddp, x, y, epochs):
    sampler = DistributedSampler(range(len(x)), world_size, rank)
    optimiser = torch.optim.SGD(ddp.parameters(), lr=0.5)
    steps = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(8):
            nn.functional.cross_entropy(ddp.module(x[rows]), y[rows]).backward()
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
