"""Cut along the first dimension.

fails: all-reduce/bytes
shows: Cut the numbers of x
points: 16
runs: all-reduce
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    chunks = list(x.tensor_split(dist.get_world_size(group)))
    ring_reduce_scatter([c.reshape(-1) for c in chunks], group)
    ring_all_gather([c.reshape(-1) for c in chunks], group)
