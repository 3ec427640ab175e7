"""The parts hang on the whole layer by autograd: no optimiser can train them.

fails: part/memory
shows: A part must be a leaf
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    if split == "out":
        rows = shard(conv.out_channels, rank, size)
        return conv.weight[rows].clone(), None if conv.bias is None else conv.bias[rows].clone()
    return conv.weight[:, shard(conv.in_channels, rank, size)].clone(), None if conv.bias is None else conv.bias.clone()
