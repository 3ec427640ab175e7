"""Empty chunks are not sent."""
# %% grade_id="reduce-scatter"
# %%px --setup
def around(chunks, first, group, land):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        out, into, works = chunks[(me + first - s) % p], chunks[(me + first - s - 1) % p], []
        came = torch.empty_like(into)
        if out.numel():
            works.append(dist.isend(out, group=group, group_dst=(me + 1) % p))
        if came.numel():
            works.append(dist.irecv(came, group=group, group_src=(me - 1) % p))
        for work in works:
            work.wait()
        land(into, came)


def ring_reduce_scatter(chunks, group=None):
    around(chunks, -1, group, torch.Tensor.add_)
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    around(chunks, 0, group, torch.Tensor.copy_)
