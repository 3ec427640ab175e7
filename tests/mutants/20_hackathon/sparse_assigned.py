"""The ranks' numbers are put in one after the other, and a later one replaces an earlier one.

fails: sparse/weights, sparse/all
shows: only one of their values has arrived
points: 20
"""
# %% grade_id="sparse"
def sparse_step(weights: torch.Tensor, gradient: torch.Tensor, kept: torch.Tensor,
                count: int, rate: float) -> None:
    world = dist.get_world_size()
    kept += gradient
    places = kept.abs().topk(count).indices
    values = kept[places]
    kept[places] = 0
    all_places = [torch.empty_like(places) for _ in range(world)]
    all_values = [torch.empty_like(values) for _ in range(world)]
    dist.all_gather(all_places, places)
    dist.all_gather(all_values, values)
    total = torch.zeros_like(weights)
    for at, sent in zip(all_places, all_values):
        total[at] = sent
    weights -= rate * total / world
