"""The order comes from NumPy's global generator: another one with each call.

fails: rows/shares, rows/world, rows/epoch
shows: Draw from a separate generator
points: 23
"""
# %% grade_id="rows"
def rows(seen, batch, rank, world, images, seed):
    order = np.random.permutation(images)
    return [int(order[place % images]) for place in range(seen, seen + batch)][rank::world]
