"""Rank 0 alone reads the file, and sends everything that is in it."""
# %% grade_id="life"
def life(folder, until: int, batch) -> torch.nn.Module:
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 10).double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    path, start = Path(folder, "newest.pt"), 0
    read = [torch.load(path, weights_only=True) if rank == 0 and path.exists() else None]
    dist.broadcast_object_list(read, src=0)
    if saved := read[0]:
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        start = saved["steps"]
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
    return net
