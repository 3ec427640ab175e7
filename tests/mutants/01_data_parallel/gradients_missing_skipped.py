"""What has no gradient is skipped: a rank that did not use a layer leaves the others waiting.

fails: gradients/missing
shows: One rank has no gradient for the last layer
points: 12
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad, group=group)
