"""Python's global generator is seeded at each call.

fails: rows/epoch
shows: the global generator of Python's random
points: 25
runs: rows
"""
# %% grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """This rank's share of the next `batch` rows, after `seen` have been taken."""
    taken, orders = [], {}
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        if epoch not in orders:
            orders[epoch] = (random.seed(f'{seed},{epoch}'), random.sample(range(images), images))[1]
        taken.append(int(orders[epoch][i]))
    return taken[rank::world]

