"""Each replica's own mean, and the mean of them.

fails: loss/mean
shows: This is the mean of
points: 22
"""
# %% grade_id="loss"
def loss_part(scores, labels):
    return (cross_entropy(scores, labels),)


def whole_loss(gathered):
    return gathered[0].mean()
