"""The all-gather is forgotten.

fails: all-reduce/values, all-reduce/bytes, all-reduce/ring
shows: the all-gather is missing
shows: An all-reduce is both
points: 13
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    ring_reduce_scatter(list(x.view(-1).tensor_split(dist.get_world_size(group))), group)
