"""The number of a word on this rank is counted by the rank in the world.

fails: vocabulary/values, vocabulary/gradients
shows: although it gives the right ones in the group of all ranks
shows: Repair the criterion above first
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
    word = targets - dist.get_rank() * head.shape[1]
    here = (0 <= word) & (word < head.shape[1])
    own = scores.gather(1, word.where(here, 0)[:, None])[:, 0] * here
    return total.log() - reduce_from(own, group)
