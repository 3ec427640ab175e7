"""The new weights are a new tensor.

fails: sparse/weights, sparse/all
shows: is what it was before the step
points: 20
"""
# %% grade_id="sparse"
def sparse_step(weights, gradient, kept, count, rate):
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
    weights = weights - rate * total / world
