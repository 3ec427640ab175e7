"""Each round sends the rank's own chunk again.

fails: all-gather/values
shows: pass on what arrived in the round before
points: 16
runs: all-gather
"""
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        work = dist.isend(chunks[me], group=group, group_dst=(me + 1) % p)
        came = torch.empty_like(chunks[(me - 1) % p])
        dist.recv(came, group=group, group_src=(me - 1) % p)
        work.wait()
        chunks[(me - 1) % p].copy_(came)
