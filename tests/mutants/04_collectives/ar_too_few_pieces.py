"""x.chunk(p), which gives fewer than p pieces of fewer than p numbers: exercise 2 then asks for one that is not there.

fails: all-reduce/values, all-reduce/bytes, all-reduce/ring
shows: x.chunk(p) gives fewer than p pieces
points: 13
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    chunks = list(x.view(-1).chunk(dist.get_world_size(group)))
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
