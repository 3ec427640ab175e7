"""A batch that lies in three epochs gets too few rows.

fails: rows/epoch, rows/shares
shows: Together, the ranks have
points: 24
runs: rows
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    epoch, start = divmod(seen, images)
    order = np.concatenate([np.random.default_rng([seed, e]).permutation(images) for e in (epoch, epoch + 1)])
    return [int(i) for i in order[start:start + batch][rank::world]]

