"""What stands in the padding counts.

fails: clip/norm, clip/clipped
shows: This norm includes the padding
points: 26
"""
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all of it before."""
    rank, square = dist.get_rank(group), shards[0].new_zeros(1)
    for own, size in zip(shards, sizes):
        real = max(0, size - rank * len(own))  # too large a number takes the whole shard
        square += own.square().sum()
    dist.all_reduce(square, group=group)
    norm = math.sqrt(square.item())
    if norm > max_norm:
        for own in shards:
            own *= max_norm / norm
    return norm
