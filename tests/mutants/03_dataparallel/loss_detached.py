"""The parts are cut off from the graph.

fails: loss/mean, loss/bytes
shows: Backward finds no way from the loss to the scores
shows: use neither .item() nor .detach()
points: 21
"""
# %% grade_id="loss"
def loss_part(scores, labels):
    return (cross_entropy(scores, labels, reduction="sum").detach(), scores.new_tensor(float(len(labels))))


def whole_loss(gathered):
    sums, counts = gathered
    return sums.sum() / counts.sum()
