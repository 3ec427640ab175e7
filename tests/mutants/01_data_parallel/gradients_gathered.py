"""Right values by the wrong algorithm: everyone gathers all gradients, and adds them up.

fails: gradients/bytes
shows: Add up on the way (all-reduce) and do not gather
points: 12
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.requires_grad:
            gradient = torch.zeros_like(p) if p.grad is None else p.grad
            parts = [torch.empty_like(gradient) for _ in range(dist.get_world_size(group))]
            dist.all_gather(parts, gradient, group=group)
            p.grad = sum(parts)
