"""The tree halves the ranks that are left, from the largest step down; rings with irecv, odd ranks first; the last chunk takes the rest."""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me = (dist.get_rank(group) - root) % p
    for k in reversed(range((p - 1).bit_length())):
        step = 2**k
        if me % (2 * step) == 0 and me + step < p:
            dist.send(x, group=group, group_dst=(me + step + root) % p)
        elif me % (2 * step) == step:
            dist.recv(x, group=group, group_src=(me - step + root) % p)
# %% grade_id="reduce-scatter"
# %%px --setup
def step(out, into, group):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    work = dist.irecv(into, group=group, group_src=(me - 1) % p)
    dist.send(out, group=group, group_dst=(me + 1) % p)
    work.wait()


def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    going = chunks[(me - 1) % p].clone()
    for s in range(2, p + 1):
        came = torch.empty_like(chunks[(me - s) % p])
        step(going, came, group)
        going = came + chunks[(me - s) % p]
    chunks[me].copy_(going)
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(me, me - p + 1, -1):
        step(chunks[s % p], chunks[(s - 1) % p], group)
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    p, flat = dist.get_world_size(group), x.view(-1)
    n = flat.numel() // p
    chunks = [flat[r * n:(r + 1) * n if r < p - 1 else None] for r in range(p)]
    ring_reduce_scatter(chunks, group)
    ring_all_gather(chunks, group)
