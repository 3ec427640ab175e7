"""torch's global generator is seeded at each call.

fails: rows/epoch
shows: the global generator of torch
points: 25
runs: rows
"""
# %% grade_id="rows"
def rows(seen: int, batch: int, rank: int, world: int, images: int, seed: int) -> list[int]:
    """This rank's share of the next `batch` rows, after `seen` have been taken."""
    taken = []
    for place in range(seen, seen + batch):
        epoch, i = divmod(place, images)
        torch.manual_seed(seed * 100003 + epoch); order = torch.randperm(images)
        taken.append(int(order[i]))
    return taken[rank::world]
