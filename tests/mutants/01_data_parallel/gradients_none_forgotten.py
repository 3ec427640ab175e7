"""Nobody thought of None.

fails: gradients/sum, gradients/missing, gradients/bytes
shows: A gradient can be None
points: 9
runs: gradients
"""
# %% grade_id="gradients"
# %%px --setup
def sum_gradients(model, group=None):
    for p in model.parameters():
        gradient = p.grad.detach()
        dist.all_reduce(gradient, group=group)
