"""tensor_split cuts without padding: shards differ in length.

fails: shards/cut
shows: The padding is missing
points: 27
runs: shards
"""
# %% grade_id="shards"
# %%px --setup
def shard(tensor, rank: int, ranks: int):
    """The shard of this rank: flat, padded with zeros, in memory of its own."""
    flat = tensor.detach().flatten()
    return flat.tensor_split(ranks)[rank].clone()


def unshard(own, shape, group=None):
    """The whole tensor of this shape, from the shards `own` of all ranks."""
    whole = own.new_empty(len(own) * dist.get_world_size(group))
    dist.all_gather_single(whole, own, group=group)
    return whole[:math.prod(shape)].view(shape)


def reduce_shard(tensor, group=None):
    """The shard of this rank of the mean of all ranks' tensors, padded with zeros."""
    flat, ranks = tensor.detach().flatten(), dist.get_world_size(group)
    whole = pad(flat, (0, -len(flat) % ranks))
    own = whole.new_empty(len(whole) // ranks)
    dist.reduce_scatter_single(own, whole, dist.ReduceOp.AVG, group=group)
    return own
