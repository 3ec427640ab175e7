"""Each epoch's part of a batch is shared separately.

fails: rows/shares
shows: the shares may differ by one row at most
points: 25
runs: rows
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    out, place = [], seen
    while place < seen + batch:
        epoch, i = divmod(place, images)
        n = min(images - i, seen + batch - place)
        order = np.random.default_rng([seed, epoch]).permutation(images)
        out += [int(k) for k in order[i:i + n][rank::world]]
        place += n
    return out

