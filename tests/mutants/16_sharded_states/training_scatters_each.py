"""Gradients are scattered after each micro-batch: right weights, four times the bytes.

fails: training/steps
shows: not for each micro-batch
points: 26
"""
# %% grade_id="training"
# %%px --setup
def training(make, x, y, seed, steps, max_norm, mesh):
    rank, ranks = mesh.get_local_rank(), mesh.size()
    torch.manual_seed(seed)
    net = make()
    for layer in net:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for step in range(steps):
        rows = torch.arange(32 * step, 32 * (step + 1)).chunk(ranks)[rank]
        for i, part in enumerate(rows.chunk(4)):
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            (loss / 4).backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        sgd.step()
        sgd.zero_grad()
    return net
