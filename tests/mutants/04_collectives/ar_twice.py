"""The first half runs a second time on what is summed already.

fails: all-reduce/values, all-reduce/bytes, all-reduce/ring
shows: what had already been summed was summed again
shows: more bytes than in a ring
shows: more messages than rounds
points: 13
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    chunks = list(x.view(-1).tensor_split(dist.get_world_size(group)))
    for _ in range(2):
        ring_reduce_scatter(chunks, group)
        ring_all_gather(chunks, group)
