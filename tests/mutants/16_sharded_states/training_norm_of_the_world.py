"""The squares are added up over the world, and not over the mesh.

fails: training/steps
shows: added up over all ranks of the world
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
            net.set_requires_gradient_sync(i == 3)
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            (loss / 4).backward()
        gradients = [weight.grad.to_local() for weight in net.parameters()]
        square = sum(part.square().sum() for part in gradients)
        dist.all_reduce(square)
        norm = square.sqrt().item()
        for part in gradients if norm > max_norm else ():
            part *= max_norm / norm
        sgd.step()
        sgd.zero_grad()
    return net
