"""The sum is returned, and x is what it was.

fails: all-reduce/values
shows: the sum must be written into x itself
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    total = x.clone()
    chunks = list(total.view(-1).tensor_split(dist.get_world_size(group)))
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
    return total
