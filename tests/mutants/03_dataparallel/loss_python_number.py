"""The number of rows is a Python number.

fails: loss/mean, loss/bytes
shows: loss_part returns one int or more
points: 21
"""
# %% grade_id="loss"
def loss_part(scores, labels):
    return cross_entropy(scores, labels, reduction="sum"), len(labels)


def whole_loss(gathered):
    sums, counts = gathered
    return sums.sum() / counts.sum()
