"""Only the bytes are mended: from the second round on, two partners keep the same half, and each adds what belongs elsewhere.

fails: halving/values
shows: The values are wrong in a group of 4 ranks
points: 15
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    me, reach, part, halves = dist.get_rank(group), dist.get_world_size(group) // 2, x.view(-1), []
    while reach:
        lower, upper = part.chunk(2)
        mine, other = (lower, upper) if me < reach else (upper, lower)
        mine += swapped(other, me ^ reach, group)
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):
        other.copy_(swapped(mine, partner, group))
