"""Halves and doubles in float32, whatever x is.

fails: halving/values, halving/bytes
shows: rounded to float32 on its way
shows: and in the dtype of x
points: 14
"""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    flat = x.view(-1).float()
    me, reach, part, halves = dist.get_rank(group), dist.get_world_size(group) // 2, flat, []
    while reach:
        lower, upper = part.chunk(2)
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swapped(other, me ^ reach, group)
        halves.append((mine, other, me ^ reach))
        part, reach = mine, reach // 2
    for mine, other, partner in reversed(halves):
        other.copy_(swapped(mine, partner, group))
    x.copy_(flat.view_as(x))
