"""Each step is one dist.batch_isend_irecv; the tree is written from the end: who sends to me, and to whom do I send?"""
# %% grade_id="broadcast"
# %%px --setup
def tree_broadcast(x, root=0, group=None):
    p = dist.get_world_size(group)
    me = (dist.get_rank(group) - root) % p
    first = me.bit_length()  # the rounds before were needed to bring x here
    if me:
        dist.recv(x, group=group, group_src=(me - 2 ** (first - 1) + root) % p)
    while me + 2**first < p:
        dist.send(x, group=group, group_dst=(me + 2**first + root) % p)
        first += 1
# %% grade_id="reduce-scatter"
# %%px --setup
def step(out, into, group):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    calls = [dist.P2POp(dist.irecv, into, group=group, group_peer=(me - 1) % p), dist.P2POp(dist.isend, out, group=group, group_peer=(me + 1) % p)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()


def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        came = torch.zeros_like(chunks[me - s - 2])  # a list counts from its end, too
        step(chunks[me - s - 1], came, group)
        chunks[me - s - 2].add_(came)
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(p - 1):
        step(chunks[me - s], chunks[me - s - 1], group)
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    p = dist.get_world_size(group)
    flat = x.reshape(-1)
    bounds = [flat.numel() * r // p for r in range(p + 1)]
    chunks = [flat[a:b] for a, b in zip(bounds, bounds[1:])]
    for half in (ring_reduce_scatter, ring_all_gather):
        half(chunks, group)
