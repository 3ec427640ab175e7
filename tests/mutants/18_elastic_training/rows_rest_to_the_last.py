"""The last rank takes all that is left over.

fails: rows/shares
shows: the shares may differ by one row at most
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng([seed, epoch]).permutation(images)[i]))
    share = batch // world
    return taken[rank * share:(rank + 1) * share if rank < world - 1 else batch]
