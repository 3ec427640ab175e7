"""The bias of the in split is the whole layer's own, in its memory.

fails: part/memory
shows: its memory belongs to the whole layer
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    if split == "out":
        rows = shard(conv.out_channels, rank, size)
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, shard(conv.in_channels, rank, size)]), conv.bias
