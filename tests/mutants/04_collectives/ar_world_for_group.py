"""The group is not handed on: a ring of the world.

fails: all-reduce/values, all-reduce/bytes, all-reduce/ring
shows: Does a rank of the group wait for one of them?
points: 13
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    chunks = list(x.view(-1).tensor_split(dist.get_world_size()))
    ring_reduce_scatter(chunks)
    ring_all_gather(chunks)
