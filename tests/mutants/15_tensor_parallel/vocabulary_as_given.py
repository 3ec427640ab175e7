"""The faulty function, unchanged.

fails: vocabulary/values, vocabulary/gradients, vocabulary/sent
shows: Each rank subtracts the largest score of its own words
shows: each rank has only a part of the gradient of h
points: 25
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = h @ head
    scores = scores - scores.detach().amax(1, keepdim=True)
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
