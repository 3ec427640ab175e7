"""torch.distributed's own all-reduce.

fails: all-reduce/bytes, all-reduce/ring
shows: The allreduce of torch.distributed does the work here
points: 15
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    dist.all_reduce(x, group=group)
