"""Without the largest score there is nothing to share, but exp overflows.

fails: vocabulary/values, vocabulary/gradients
shows: exp overflows unless the largest score of all words is subtracted
shows: Repair the criterion above first
points: 26
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = copy_to(h, group) @ head
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
