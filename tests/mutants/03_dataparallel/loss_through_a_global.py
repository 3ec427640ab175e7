"""The counts travel through a global.

fails: loss/mean
shows: This is not the mean of the losses of all rows
points: 22
runs: loss
"""
# %% grade_id="loss"
COUNTS_ = []
def loss_part(scores, labels):
    COUNTS_.append(len(labels))
    return (cross_entropy(scores, labels, reduction="sum"),)
def whole_loss(gathered):
    n = sum(COUNTS_[-len(gathered[0]):])
    return gathered[0].sum() / n
