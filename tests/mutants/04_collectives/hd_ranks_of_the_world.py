"""Partners are looked for by the ranks of the world.

fails: halving/values, halving/bytes
shows: partners are counted inside the group
points: 14
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    me, reach, part, halves = dist.get_rank(), dist.get_world_size(group) // 2, x.view(-1), []
    while reach:
        lower, upper = part.chunk(2)
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swapped(other, me ^ reach, group)
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):
        other.copy_(swapped(mine, partner, group))
