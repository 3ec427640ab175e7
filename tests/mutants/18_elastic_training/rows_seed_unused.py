"""The order is made of the epoch only.

fails: rows/epoch
shows: With a different seed, an epoch has the same order
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng(epoch).permutation(images)[i]))
    return taken[rank::world]
