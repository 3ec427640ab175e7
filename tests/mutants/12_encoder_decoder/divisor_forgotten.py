"""The divisor is ignored; in training with two pairs that is a wrong gradient.

fails: loss/divisor
shows: A divisor was given
points: 11
"""
# %% grade_id="loss"
# %%px --setup
def loss_of(scores, targets, divisor=None):
    return cross_entropy(torch.cat(scores), torch.cat(targets))
