"""The shared gradient is summed first, but each stage still clips by its own norm.

fails: update/norm, update/weights
shows: This is the norm of the gradients that this stage holds
shows: This stage has clipped by the norm of its own gradients
points: 19
"""
# %% grade_id="update"
# %%px --setup
def update(stage, optimiser, max_norm, shared, ends, group=None):
    if shared is not None:
        dist.all_reduce(shared.grad, group=ends)
    norm = nn.utils.clip_grad_norm_(stage.parameters(), max_norm)
    optimiser.step()
    return norm.item()
