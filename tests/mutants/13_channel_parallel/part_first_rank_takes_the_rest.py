"""The channels that do not divide go to rank 0.

fails: part/cut
shows: 
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def block(n):
        each, rest = divmod(n, size)
        return slice(0, each + rest) if rank == 0 else slice(rest + rank * each, rest + (rank + 1) * each)

    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    if split == "out":
        rows = block(conv.out_channels)
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, block(conv.in_channels)]), own(conv.bias)
