"""DDP has averaged the gradients, and the loop averages them once more.

fails: bug/averaged
shows: is something averaged a second time
points: 18
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
            nn.functional.cross_entropy(ddp(x[rows]), y[rows]).backward()
            for parameter in ddp.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world_size
            optimiser.step()
            optimiser.zero_grad()
            steps.append(rows)
    return steps
