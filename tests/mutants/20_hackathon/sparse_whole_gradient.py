"""Everything is sent, and nothing is kept.

fails: sparse/weights, sparse/all
shows: more than `count` numbers of a rank have arrived
points: 20
"""
# %% grade_id="sparse"
def sparse_step(weights, gradient, kept, count, rate):
    total = kept + gradient
    kept.zero_()
    dist.all_reduce(total)
    weights -= rate * total / dist.get_world_size()
