"""Only the values are mended: in each round of the halving both halves are sent, and one is used.

fails: halving/bytes
shows: something is sent that is not used
points: 16
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    me, reach, part, halves = dist.get_rank(group), dist.get_world_size(group) // 2, x.view(-1), []
    while reach:
        lower, upper = part.chunk(2)
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swapped(part, me ^ reach, group).chunk(2)[1 if me & reach else 0]
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):
        other.copy_(swapped(mine, partner, group))
