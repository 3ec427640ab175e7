"""The part is cut by manyhands.links.

fails: part/cut, part/memory
shows: this is the package's own answer, which is closed here, so write it yourself
points: 15
runs: part
"""
# %% grade_id="part"
# %%px --setup
def part(conv: nn.Conv2d, split: str, rank: int, size: int):
    """This rank's `(weight, bias)` of a whole layer, as `nn.Parameter`s; `bias` is None
    where the layer has none.

    They are trained, so they are leaves; and they have memory of their own, so that the
    whole layer can be given up.
    """
    def own(tensor):
        return None if tensor is None else nn.Parameter(tensor.detach().clone())

    from manyhands.links.parallel_conv import _shard, share_sizes
    s = _shard(conv, share_sizes(conv.out_channels if split == 'out' else conv.in_channels, size), rank, split)
    return s.weight, s.bias if split == 'out' else own(conv.bias)
    if split == "out":
        rows = shard(conv.out_channels, rank, size)
        return own(conv.weight[rows]), own(None if conv.bias is None else conv.bias[rows])
    return own(conv.weight[:, shard(conv.in_channels, rank, size)]), own(conv.bias)
