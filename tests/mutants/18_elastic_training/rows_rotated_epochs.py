"""The same order in each epoch, from a different place on.

fails: rows/epoch
shows: turns one into the other
points: 25
runs: rows
"""
# %% grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """This rank's share of the next `batch` rows, after `seen` have been taken."""
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        order = np.random.default_rng(seed).permutation(images)
        taken.append(int(order[(i + 7 * epoch) % images]))
    return taken[rank::world]
