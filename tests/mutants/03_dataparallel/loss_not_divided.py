"""Sums are added up, and nobody divides.

fails: loss/mean
shows: added up but not divided
points: 22
"""
# %% grade_id="loss"
def loss_part(scores, labels):
    return (cross_entropy(scores, labels, reduction="sum"),)


def whole_loss(gathered):
    return gathered[0].sum()
