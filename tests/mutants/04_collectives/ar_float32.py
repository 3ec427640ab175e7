"""All numbers go through float32.

fails: all-reduce/values, all-reduce/bytes
shows: rounded to float32 on its way
shows: These are fewer bytes than
points: 14
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    total = x.float()
    chunks = list(total.view(-1).tensor_split(dist.get_world_size(group)))
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
    x.copy_(total)
