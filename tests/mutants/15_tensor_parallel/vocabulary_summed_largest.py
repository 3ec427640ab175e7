"""The largest scores of the ranks are added, so that the sum of exp becomes zero.

fails: vocabulary/values, vocabulary/gradients
shows: the sum is zero if more than that is
points: 26
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = copy_to(h, group) @ head
    largest = reduce_from(scores.detach().amax(1, keepdim=True), group)
    scores = scores - largest
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
