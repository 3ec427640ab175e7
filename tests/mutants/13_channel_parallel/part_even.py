"""Every rank gets n // size channels: the rest belongs to nobody.

fails: part/cut
shows: no rank has the rest
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    n = (conv.out_channels if split == "out" else conv.in_channels) // size
    rows = slice(rank * n, (rank + 1) * n)
    if split == "out":
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, rows]), own(conv.bias)
