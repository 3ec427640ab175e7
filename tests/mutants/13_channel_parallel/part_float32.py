"""The part goes through a list and comes back in float32.

fails: part/cut
shows: weight has a different dtype from the layer's
points: 16
"""
# %% grade_id="part"
# %%px
def part(conv, split, rank, size):
    if split == "out":
        mine = shard(conv.out_channels, rank, size)
        weight, bias = conv.weight[mine], None if conv.bias is None else conv.bias[mine]
    else:
        mine = shard(conv.in_channels, rank, size)
        weight, bias = conv.weight[:, mine], conv.bias
    return nn.Parameter(torch.tensor(weight.tolist())), None if bias is None else nn.Parameter(torch.tensor(bias.tolist()))
