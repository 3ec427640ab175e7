"""The rows of the file, from a different place on in each epoch.

fails: rows/epoch
shows: Shuffle each epoch with a random permutation
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
            orders[epoch] = [(i + seed + epoch) % images for i in range(images)]
        taken.append(int(orders[epoch][i]))
    return taken[rank::world]

