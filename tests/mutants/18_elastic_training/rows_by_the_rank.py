"""Each rank shuffles for itself, and takes its share of another order.

fails: rows/shares, rows/world, rows/epoch
shows: have taken the same row
points: 23
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        taken.append(int(np.random.default_rng([seed, epoch, rank]).permutation(images)[i]))
    return taken[rank::world]
