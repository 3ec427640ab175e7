"""The losses of all rows are handed back: right, and a number for each row.

fails: loss/bytes
shows: although two are enough
points: 22
"""
# %% grade_id="loss"
def loss_part(scores, labels):
    return cross_entropy(scores, labels, reduction="none")


def whole_loss(gathered):
    return gathered.mean()
