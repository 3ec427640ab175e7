"""The two sums travel in one call, and the target's score is found by a mask."""
# %% grade_id="vocabulary"
# %%px --setup
def vocabulary_loss(h, head, targets, group=None):
    scores = copy_to(h, group) @ head
    largest = scores.detach().amax(1, keepdim=True)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX, group=group)
    scores = scores - largest
    words = torch.arange(head.shape[1], device=h.device) + dist.get_rank(group) * head.shape[1]
    own = (scores * (words == targets[:, None])).sum(1)
    total, own = reduce_from(torch.stack([scores.exp().sum(1), own]), group)
    return total.log() - own
