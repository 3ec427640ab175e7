"""Each rank sums up the scores of all ranks, so it sends as many numbers as there are words.

fails: vocabulary/sent
shows: Forward sends more than three numbers for each position
points: 27
"""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    mine = copy_to(h, group) @ head
    scores = reduce_from(nn.functional.pad(mine, (rank * mine.shape[1], (size - 1 - rank) * mine.shape[1])), group)
    return nn.functional.cross_entropy(scores, targets, reduction="none")
