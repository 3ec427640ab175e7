"""The faulty function, unchanged.

fails: update/norm, update/weights
shows: The stages return different norms
shows: Each end has clipped its gradient of the shared matrix by its own factor
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    norm = nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    optimiser.step()
    return norm.item()
