"""The generator's seed is seed + epoch.

fails: rows/epoch
shows: as with seed + epoch
points: 25
runs: rows
"""
# %% grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """This rank's share of the next `batch` rows, after `seen` have been taken."""
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        order = np.random.default_rng(seed + epoch).permutation(images)
        taken.append(int(order[i]))
    return taken[rank::world]
