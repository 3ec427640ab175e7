"""Every rank computes the whole batch: the right weights, without a word between the ranks.

fails: step/weights
shows: A rank that computes the whole batch needs no other rank
points: 11
runs: step
"""
# %% grade_id="step"
# %%px --setup
def train_step(model, x, y, rate, decay, group=None):
    model.zero_grad()
    objective = share(model, x, y, len(x), decay, 1)
    objective.backward()
    with torch.no_grad():
        for p in model.parameters():
            if p.requires_grad:
                p -= rate * p.grad
    return objective.item()
