"""Every rank takes batch // world rows, and nobody takes the rest.

fails: rows/shares, rows/world, rows/epoch
shows: Together, the ranks have
points: 23
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng([seed, epoch]).permutation(images)[i]))
    share = batch // world
    return taken[rank * share:(rank + 1) * share]
