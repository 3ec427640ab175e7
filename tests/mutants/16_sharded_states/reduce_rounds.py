"""The mean is computed in float32, whatever the type is: of float64 the last digits are gone, and bfloat16 sends twice the bytes.

fails: shards/mean, shards/traffic
shows: they were rounded on the way
shows: or in a wider type
points: 26
runs: shards
"""
# %% grade_id="shards"
# %%px --setup
def shard(tensor, rank: int, ranks: int):
    """The shard of this rank: flat, padded with zeros, in memory of its own."""
    flat = tensor.detach().flatten()
    return pad(flat, (0, -len(flat) % ranks)).chunk(ranks)[rank].clone()


def unshard(own, shape, group=None):
    """The whole tensor of this shape, from the shards `own` of all ranks."""
    whole = own.new_empty(dist.get_world_size(group) * len(own))
    dist.all_gather_single(whole, own, group=group)
    return whole[:math.prod(shape)].view(shape)


def reduce_shard(tensor, group=None):
    """The shard of this rank of the mean of all ranks' tensors, padded with zeros."""
    ranks, flat = dist.get_world_size(group), tensor.float().flatten()
    whole = pad(flat, (0, -len(flat) % ranks))
    own = whole.new_empty(len(whole) // ranks)
    dist.reduce_scatter_single(own, whole, dist.ReduceOp.AVG, group=group)
    return own.to(tensor.dtype)
