"""p chunks of n // p numbers: the rest is nobody's.

fails: all-reduce/values, all-reduce/bytes
shows: each leave a remainder
points: 14
"""
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    p = dist.get_world_size(group)
    flat = x.view(-1)
    n = flat.numel() // p
    chunks = [flat[r * n:(r + 1) * n] for r in range(p)]
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
