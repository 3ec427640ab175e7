"""Every epoch has the same order.

fails: rows/epoch
shows: Two epochs have the same order
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    order = np.random.default_rng(seed).permutation(images)
    return [int(order[place % images]) for place in range(seen, seen + batch)][rank::world]
