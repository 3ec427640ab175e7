"""A rank without the word of a place adds the score of a different word.

fails: vocabulary/values, vocabulary/gradients
shows: adds the score of a different word
points: 26
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = copy_to(h, group) @ head
    largest = scores.detach().amax(1, keepdim=True)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    scores = scores - largest
    total = reduce_from(scores.exp().sum(1), group)
    word = targets - dist.get_rank(group) * head.shape[1]
    own = scores.gather(1, word.clamp(0, head.shape[1] - 1)[:, None])[:, 0]
    return total.log() - reduce_from(own, group)
