"""x is filled up with zeros until p divides it, and goes round in another convention; blocking calls in an order without a circle."""
# %% grade_id="reduce-scatter"
# %%px --setup
def swap(out, room, group):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    came = torch.empty_like(room)
    calls = [lambda: dist.send(out, group=group, group_dst=(me + 1) % p), lambda: dist.recv(came, group=group, group_src=(me - 1) % p)]
    for call in calls if me else calls[::-1]:  # rank 0 receives first: no circle
        call()
    return came


def ring_reduce_scatter(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    for s in range(1, p):
        into = chunks[(me - 1 - s) % p]
        into += swap(chunks[(me - s) % p], into, group)
# %% grade_id="all-gather"
# %%px --setup
def ring_all_gather(chunks, group=None):
    me, p = dist.get_rank(group), dist.get_world_size(group)
    going = chunks[me]
    for s in range(1, p):
        going = swap(going, chunks[(me - s) % p], group)
        chunks[(me - s) % p].copy_(going)
# %% grade_id="all-reduce"
# %%px --setup
def ring_all_reduce(x, group=None):
    me, p, n = dist.get_rank(group), dist.get_world_size(group), x.numel()
    padded = torch.cat([x.flatten(), x.new_zeros(-n % p)])
    rows = padded.view(p, -1)
    for s in range(p - 1):
        rows[(me - s - 1) % p] += swap(rows[(me - s) % p].clone(), rows[0], group)
    for s in range(p - 1):
        rows[(me - s) % p] = swap(rows[(me - s + 1) % p].clone(), rows[0], group)
    x.copy_(padded[:n].view(x.shape))
# %% grade_id="cost"
# %%px --setup
def most_bytes(way, p, n_bytes):
    if way == "ring":
        return 2 * (p - 1) / p * n_bytes
    reach, times = 1, 0
    while reach < p:
        reach, times = 2 * reach, times + 1
    return n_bytes * (times if way == "tree" else p - 1)


def rounds(way, p):
    import math
    return math.ceil(math.log2(p)) if way == "broadcast" else 2 * p - 2
