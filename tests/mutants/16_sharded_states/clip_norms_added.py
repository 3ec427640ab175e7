"""The ranks' norms are added, not their squares.

fails: clip/norm, clip/clipped
shows: These are norms that were added
points: 26
"""
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all of it before."""
    rank, square = dist.get_rank(group), shards[0].new_zeros(1)
    for own, size in zip(shards, sizes):
        real = max(0, size - rank * len(own))  # too large a number takes the whole shard
        square += own[:real].square().sum()
    square = square.sqrt()
    dist.all_reduce(square, group=group)
    norm = square.item()
    if norm > max_norm:
        for own in shards:
            own *= max_norm / norm
    return norm
