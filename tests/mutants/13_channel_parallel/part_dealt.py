"""Channels are dealt out like cards, as in the published layer.

fails: part/cut
shows: as if they had been distributed over the ranks in turn
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    rows = slice(rank, None, size)
    if split == "out":
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, rows]), own(conv.bias)
