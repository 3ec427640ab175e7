"""The padding is multiplied by 0: where it is not a number, neither is the norm.

fails: clip/norm
shows: 0 times nan is nan
points: 27
"""
# %% grade_id="clip"
# %%px --setup
def clip_shards(shards: list, sizes: list, max_norm: float, group=None) -> float:
    """Clip the shards of some vectors in place; return the norm of all of it before."""
    rank, square = dist.get_rank(group), 0
    for own, size in zip(shards, sizes):
        real = torch.arange(len(own), device=own.device) + rank * len(own) < size
        square = square + (own * real).square().sum()
    dist.all_reduce(square, group=group)
    norm = square.sqrt().item()
    for own in shards if norm > max_norm else ():
        own *= max_norm / norm
    return norm
