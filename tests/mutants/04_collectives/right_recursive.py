"""Halving and doubling as in the tutorial: it calls itself for the half that it keeps."""
# %% grade_id="halving"
# %%px --setup
def halving_all_reduce(x, group=None):
    def among(part, reach):
        if reach:
            me = dist.get_rank(group)
            lower, upper = part[:len(part) // 2], part[len(part) // 2:]
            mine, other = (upper, lower) if me & reach else (lower, upper)
            mine += swapped(other, me ^ reach, group)
            among(mine, reach // 2)
            other.copy_(swapped(mine, me ^ reach, group))

    among(x.view(-1), dist.get_world_size(group) // 2)
