"""The parts are plain tensors that require a gradient: leaves, but no module would register them.

fails: part/memory
shows: it is not an nn.Parameter
points: 16
"""
# %% grade_id="part"
# %%px --setup
def part(conv, split, rank, size):
    def own(tensor):
        return None if tensor is None else tensor.detach().clone().requires_grad_()

    if split == "out":
        rows = shard(conv.out_channels, rank, size)
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, shard(conv.in_channels, rank, size)]), own(conv.bias)
