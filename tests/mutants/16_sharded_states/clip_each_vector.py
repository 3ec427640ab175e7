"""One all-reduce for each vector.

fails: clip/traffic
shows: Add up the squares of all vectors first
points: 27
"""
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all of it before."""
    rank, square = dist.get_rank(group), shards[0].new_zeros(1)
    for own, size in zip(shards, sizes):
        one = square.new_zeros(1)
        real = max(0, size - rank * len(own))  # too large a number takes the whole shard
        one += own[:real].square().sum()
        dist.all_reduce(one, group=group)
        square += one
    norm = math.sqrt(square.item())
    if norm > max_norm:
        for own in shards:
            own *= max_norm / norm
    return norm
