"""The momenta differ between the ranks, and rank 0's weights are sent after the last step only.

fails: life/weights
shows: not the weights that a single process computes
points: 25
"""
# %% grade_id="life"
def life(folder, until: int, batch) -> torch.nn.Module:
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 10).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    path, start = Path(folder, "newest.pt"), 0
    if path.exists():
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])
        if rank == 0:
            optimizer.load_state_dict(saved["optimizer"])
        start = saved["steps"]
    dist.barrier()  # no rank saves before all have loaded
    for step in range(start, until):
        x, y = batch(step)
        loss = cross_entropy(net(x[rank::world]), y[rank::world], reduction="sum") / len(y)
        optimizer.zero_grad()
        loss.backward()
        for weight in net.parameters():
            dist.all_reduce(weight.grad)
        optimizer.step()
        if rank == 0 and (step + 1) % 5 == 0:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                        "steps": step + 1}, path)
    for weight in net.parameters():
        dist.broadcast(weight.detach(), src=0)
    return net
