"""The numbers are added up, and the mean is forgotten.

fails: sparse/weights, sparse/all
shows: the sum over the ranks, not the mean
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
    total.index_add_(0, torch.cat(all_places), torch.cat(all_values))
    weights -= rate * total
