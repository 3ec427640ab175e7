"""The order is shuffled with the number of ranks in its seed.

fails: rows/world
shows: has different rows than with one
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng([seed, epoch, world]).permutation(images)[i]))
    return taken[rank::world]
