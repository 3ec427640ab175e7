"""What isend returns is thrown away: nothing keeps the message, and it never leaves.

fails: reduce-scatter/values, reduce-scatter/ring, all-reduce/values, all-reduce/bytes, all-reduce/ring
shows: a message whose work handle has been dropped may never leave
shows: began to send with isend, and did not wait for
points: 10
"""
# %% grade_id="reduce-scatter"
# %%px --setup
def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        mine = chunks[(me - 2 - s) % p]
        came = torch.empty_like(mine)
        dist.isend(chunks[(me - 1 - s) % p], group=group, group_dst=(me + 1) % p)
        dist.recv(came, group=group, group_src=(me - 1) % p)
        mine += came
