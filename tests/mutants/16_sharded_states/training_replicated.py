"""Nothing is cut: one process on each rank, with all rows.

fails: training/start, training/steps
shows: must return the network that `fully_shard` has cut
points: 25
"""
# %% grade_id="training"
# %%px --setup
def training(make, x, y, seed, steps, max_norm, mesh):
    torch.manual_seed(seed)
    net = make()
    sgd = torch.optim.SGD(net.parameters(), lr=0.5)
    for step in range(steps):
        rows = slice(32 * step, 32 * (step + 1))
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        nn.utils.clip_grad_norm_(net.parameters(), max_norm)
        sgd.step()
        sgd.zero_grad()
    return net
