"""Seed times epoch: all seeds have one first epoch, and under the seed 0 all epochs are the same.

fails: rows/epoch
shows: The epoch must be part of the seed
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng(seed * epoch).permutation(images)[i]))
    return taken[rank::world]
