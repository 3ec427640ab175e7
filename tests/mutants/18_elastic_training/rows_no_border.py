"""At the border of two epochs the batch goes on in the old epoch's order.

fails: rows/epoch
shows: belongs to the next epoch's order
points: 25
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    order = np.random.default_rng([seed, seen // images]).permutation(images)
    taken = [int(order[place % images]) for place in range(seen, seen + batch)]
    return taken[rank::world]
