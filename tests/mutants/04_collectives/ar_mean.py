"""The mean in place of the sum.

fails: all-reduce/values
shows: so divide afterwards if you want a mean
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    p = dist.get_world_size(group)
    chunks = list(x.view(-1).tensor_split(p))
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
    x.copy_(x / p)
