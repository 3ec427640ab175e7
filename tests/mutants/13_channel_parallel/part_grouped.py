"""Both axes of the weight are cut: a grouped convolution.

fails: part/cut
shows: Both axes are cut. This is a grouped convolution
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    rows, columns = shard(conv.out_channels, rank, size), shard(conv.in_channels, rank, size)
    bias = conv.bias if split == "in" or conv.bias is None else conv.bias[rows]
    return own(conv.weight[rows, columns]), own(bias)
