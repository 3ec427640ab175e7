"""The largest score is shared, but h enters the cut part without copy_to.

fails: vocabulary/gradients, vocabulary/sent
shows: h has only the gradient that came back through this rank's words
shows: each rank has only a part of the gradient of h
points: 26
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = h @ head
    largest = scores.detach().amax(1, keepdim=True)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    scores = scores - largest
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
