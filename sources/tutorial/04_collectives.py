# %% [markdown] unit={"minutes": 40, "ranks": 5, "framework": "torch", "title": "Collectives"}
# # 04 Collectives
#
# A *collective* is a call that all ranks make together: a broadcast, a sum, an all-reduce. Each is made of messages between two ranks. This notebook
# takes them apart. At the end you can
#
# * write a broadcast and an all-reduce from `send` and `recv`: as a star, as a tree, as a ring, by halving and doubling;
# * count what each costs: rounds, messages, and bytes of the busiest rank;
# * say why each rank of a ring sends $2(p-1)/p$ times the tensor, however many ranks there are;
# * name the parts of an all-reduce, and choose the collective that gives each rank what it needs, and no more;
# * recognise three mistakes: all send first, chunks off by one, right values by the wrong algorithm.
#
# **Before:** unit 00, or five ranks that you can start. **Minutes:** 40. **Ranks:** 5: not a power of two, on purpose.

# %% [markdown]
# ## Five ranks
#
# This kernel starts the ranks. Cells that begin with `%%px` run on all five of them; `--setup` marks what is to be run again if the cluster
# must be healed, and it will be.

# %% tags=["setup"]
from manyhands import Cluster, predict, settle

cluster = Cluster(nodes=1, ranks_per_node=5, framework="torch")

# %% tags=["setup"]
# %%px --setup
import os

import torch
import torch.distributed as dist

from manyhands.ledger import Ledger

if not dist.is_initialized():  # so that this cell can be run twice
    dist.init_process_group(os.environ["MANYHANDS_BACKEND"])
device = torch.device(os.environ["MANYHANDS_DEVICE"])
rank, size = dist.get_rank(), dist.get_world_size()
# the first p ranks
groups = {p: dist.new_group(range(p), backend="gloo") for p in (2, 3, 4, 5)}

# %% [markdown]
# All we allow ourselves is `dist.send` and `dist.recv`: a message from one rank to one other. These groups use gloo and CPU tensors, on GPUs too: messages by
# hand follow other rules in NCCL (see *The real ones*). The ledger counts them. `seen` runs a call on the first p ranks
# and says how many **rounds** it took (the longest chain of messages of which each had to wait for the one before: four sends of one rank are four rounds,
# what four ranks send to one may be under way at once, in one round), and how many messages and bytes left the **busiest** rank, the one that sends most.

# %% tags=["setup"]
# %%px --setup
def place(group):
    """This rank's number in the group, and how many there are."""
    return dist.get_rank(group), dist.get_world_size(group)

def seen(call, p=size, numbers=6000):
    x = torch.full((numbers,), rank + 1.0)
    with Ledger() as ledger:
        if rank < p:
            call(x, groups[p])
    merged = ledger.gather()
    most = {name: max(one[name] for one in merged.ranks)
            for name in ("messages_sent", "bytes_sent")}
    return {"x": x[0].item(), "rounds": merged.rounds, **most, "events": merged.events}

# %% tags=["setup"]
# %%px --setup
def told(name, found):
    if rank == 0:
        print(f"{name:<15} rounds: {found['rounds']}; busiest rank: "
              f"{found['messages_sent']} messages, {found['bytes_sent']} bytes")

# %% [markdown]
# ## Broadcast: a star and a tree
#
# Rank 0 has x, all others want it. The obvious way is a **star**: rank 0 sends it to each of them. But soon others have x too, and could help. In a
# **tree** they do: in each round, every rank that has x sends it to one that has not.

# %% tags=["setup"]
# %%px --setup
def star_broadcast(x, group):
    me, p = place(group)
    if me == 0:
        for peer in range(1, p):
            dist.send(x, group=group, group_dst=peer)
    else:
        dist.recv(x, group=group, group_src=0)

def tree_broadcast(x, group):
    me, p = place(group)
    # 1, 2, 4, ...: the ranks below reach have x
    for reach in [2**k for k in range((p - 1).bit_length())]:
        if me < reach and me + reach < p:
            dist.send(x, group=group, group_dst=me + reach)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, group_src=me - reach)

# %% [markdown]
# **Predict.** How many rounds does each take on 5 ranks? And on 1000? A tensor here has 6000 numbers of 4 bytes.

# %%
predict("04-tree", "How many rounds does a tree broadcast take on 5 ranks?", unit="rounds")

# %%
# %%px
for name, call in (("star broadcast", star_broadcast), ("tree broadcast", tree_broadcast)):
    found = seen(call)
    assert found["x"] == 1  # rank 0's
    told(name, found)
tree = found["events"]

# %%
settle("04-tree", lambda: cluster.pull("found['rounds']")[0])  # of the tree, the last one

# %% [markdown]
# <details><summary>Why?</summary>
#
# Star: rank 0 sends four messages, one after the other: 4 rounds, on 1000 ranks 999. Tree: 1, 2, 4 and then all 5 ranks have x: 3 rounds, on 1000 ranks 10.
# The number of ranks with x doubles in each round, so $\log_2 p$ rounds, rounded up. In both, $p - 1$ messages travel in all: everyone needs x once.
# </details>
#
# The space-time diagram: a line for each rank, an arrow for each message.

# %%
from manyhands.plots import spacetime

tree = cluster.pull("tree")[0]
print(spacetime.table(tree))
spacetime.spacetime(tree)

# %% [markdown]
# ## Reduce, and the first all-reduces
#
# A **reduce** is a broadcast backwards: turn the arrows round, and add what comes in. Rank 0 ends with the sum. An **all-reduce** gives the sum to all: a
# reduce, then a broadcast. That makes two of them, one on the star and one on the tree.

# %% tags=["setup"]
# %%px --setup
def add_from(peer, x, group):
    came = torch.empty_like(x)  # the same shape and dtype
    dist.recv(came, group=group, group_src=peer)
    x += came

def star_all_reduce(x, group):
    me, p = place(group)
    if me:
        dist.send(x, group=group, group_dst=0)
    else:
        for peer in range(1, p):
            add_from(peer, x, group)
    star_broadcast(x, group)

# %% tags=["setup"]
# %%px --setup
def tree_all_reduce(x, group):
    me, p = place(group)
    for reach in [2**k for k in reversed(range((p - 1).bit_length()))]:  # ..., 4, 2, 1
        if reach <= me < 2 * reach:
            dist.send(x, group=group, group_dst=me - reach)
        elif me < reach and me + reach < p:
            add_from(me + reach, x, group)
    tree_broadcast(x, group)

# %%
# %%px
for name, call in (("star all-reduce", star_all_reduce),
                   ("tree all-reduce", tree_all_reduce)):
    found = seen(call)
    assert found["x"] == 1 + 2 + 3 + 4 + 5
    told(name, found)

# %% [markdown]
# Look at the bytes. The tensor has 24,000. In the star, rank 0 sends it four times, and takes it in four times, while the others wait. In the tree, three
# times. Both grow with the number of ranks, because rank 0 sends the *whole* tensor again and again. The gradients of a ResNet-50 are
# about 100 MB (Goyal et al. 2017): that one wire is what everybody waits for.
#
# ## The ring
#
# So let no message be the whole. Cut x in p chunks. The ranks stand in a ring, and each sends to the next one only. In each round *every* rank sends one
# chunk, and adds the chunk that comes in to its own. After p - 1 rounds each rank has one chunk that has met all ranks: that half is called
# **reduce-scatter**. In p - 1 more rounds the finished chunks go round once: an **all-gather**.
#
# The heart of it is one step: send to the next, receive from the one before.
#
# **Predict.** All five ranks run this line: first send, then receive. What happens?

# %%
predict("04-send-first", "All five ranks send first, then receive. What happens?",
        ["all get a tensor", "they wait in a circle", "all wait for one rank", "an error"])

# %% tags=["raises-exception"]
# %%px --patience 3
x = torch.ones(5)
dist.send(x, group=groups[5], group_dst=(rank + 1) % size)
dist.recv(x, group=groups[5], group_src=(rank - 1) % size)

# %%
import sys

def what_happened():
    waiting, awaited = ({edge[side] for edge in sys.last_value.edges} for side in (0, 1))
    if not waiting:
        return "an error"
    return "all wait for one rank" if awaited - waiting else "they wait in a circle"

settle("04-send-first", what_happened)

# %% [markdown]
# <details><summary>Why?</summary>
#
# `send` does not return before the other side has called `recv`: gloo waits until the receiver says that there is room. The other side is in `send` too. Nobody comes to `recv`: a circle. Some libraries copy a small message
# aside and let the sender go on (MPI may, below a size that it chooses). Then this works in every test, and hangs with the first large tensor.
# </details>
#
# **Mistake 1: all send first.** The cure: *start* to send with `isend`, receive, then wait for the sending. The cluster has healed itself, and has run the
# `--setup` cells again. Here is the step, and the ring.

# %% tags=["setup"]
# %%px --setup
def pass_on(chunk, room, group):
    """Send a chunk to the next rank, and return what comes from the one before; it has the
    size of `room`."""
    me, p = place(group)
    came = torch.empty_like(room)
    work = dist.isend(chunk, group=group, group_dst=(me + 1) % p)
    dist.recv(came, group=group, group_src=(me - 1) % p)
    work.wait()
    return came

# %% tags=["setup"]
# %%px --setup
def ring_all_reduce(x, group, watch=lambda title: None):
    me, p = place(group)
    chunks = x.chunk(p)  # views of x; p divides its size here
    for s in range(p - 1):  # reduce-scatter
        out, into = chunks[(me - s) % p], chunks[(me - s - 1) % p]
        into += pass_on(out, into, group)
        watch(f"reduce-scatter, round {s + 1}")
    for s in range(p - 1):  # all-gather
        out, into = chunks[(me + 1 - s) % p], chunks[(me - s) % p]
        into.copy_(pass_on(out, into, group))
        watch(f"all-gather, round {s + 1}")

# %% [markdown]
# To see it work, rank r puts in $10^r$ everywhere. Then the digits of a sum tell which ranks are in it. We print ranks as rows, chunks as columns; `23`
# means: the numbers of ranks 2 and 3 have been added up here.

# %%
# %%px
def show(title):
    rows = [None] * size
    dist.all_gather_object(rows, x.tolist())
    if rank == 0 and title.split()[-1] in "14":
        names = [["".join(str(r) for r in range(size) if int(v) // 10**r % 10) for v in row]
                 for row in rows]
        print(title, *["  " + " ".join(f"{name:<5}" for name in row).rstrip()
                       for row in names], sep="\n")

x = torch.full((5,), 10.0**rank)
ring_all_reduce(x, groups[5], show)

# %% [markdown]
# <details><summary>How to read it</summary>
#
# After one round each rank has one chunk with two ranks in it: a diagonal. After four, rank r has the complete chunk r + 1: all five digits. In the first round of the all-gather these
# move on to the next rank. After four, everything is everywhere.
# </details>
#
# **Mistake 2: off by one.** Which chunk is complete where is a matter of convention. Here rank r ends the first half with chunk r + 1. MPI and NCCL want
# chunk r on rank r. If one half of a program thinks so and the other half thinks otherwise, nothing hangs, but unfinished chunks
# go round and overwrite finished ones: the sums lack ranks. (If the finished chunks are gathered into a new tensor, the sums are complete and stand in the wrong places. A test with
# the same numbers everywhere does not see that.)
#
# On three ranks, as a space-time diagram: all lanes are busy all the time.

# %%
# %%px
ring = seen(ring_all_reduce, p=3)["events"]

# %%
ring = cluster.pull("ring")[0][:3]  # of ranks 0, 1 and 2
print(spacetime.table(ring))
spacetime.spacetime(ring)

# %% [markdown]
# ## Halving and doubling
#
# The tree has few rounds, the ring few bytes. Must one choose? Take a partner half the ranks away. Give it one half of x, take the other half from it, and
# add. Now each half lives in its own half of the ranks: go on in there, with half of the half. At the end each rank has a p-th of the sum. Back the same way: each
# exchange doubles what one has.

# %% tags=["setup"]
# %%px --setup
def swap(out, room, peer, group):
    """Send `out` to a partner, and return what comes from it; it has the size of `room`."""
    came = torch.empty_like(room)
    work = dist.isend(out, group=group, group_dst=peer)
    dist.recv(came, group=group, group_src=peer)
    work.wait()
    return came

# %% tags=["setup"]
# %%px --setup
def halve_and_double(x, reach, group):
    """An all-reduce among 2 * reach ranks."""
    if reach:
        me, _ = place(group)
        lower, upper = x.tensor_split(2)  # views
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swap(other, mine, me ^ reach, group)  # halving: a reduce-scatter
        halve_and_double(mine, reach // 2, group)
        other.copy_(swap(mine, other, me ^ reach, group))  # doubling: an all-gather

# %% [markdown]
# `me ^ reach` turns over one bit of `me`: with reach 2, ranks 0 and 2 are partners, and 1 and 3. That needs a power of two. What of the fifth rank? It gives its x to rank 0
# before, and gets the sum afterwards.

# %% tags=["setup"]
# %%px --setup
def halving_all_reduce(x, group):
    me, p = place(group)
    whole = 2 ** (p.bit_length() - 1)  # the largest power of two
    if me >= whole:  # no partner
        dist.send(x, group=group, group_dst=me - whole)
        dist.recv(x, group=group, group_src=me - whole)
        return
    if me + whole < p:
        add_from(me + whole, x, group)
    halve_and_double(x, whole // 2, group)
    if me + whole < p:
        dist.send(x, group=group, group_dst=me + whole)

# %% [markdown]
# **Predict.** Four ranks. How many rounds, and how many bytes of the 24,000 from each? And five ranks?

# %%
predict("04-halving-4", "Halving on 4 ranks: how many rounds?", unit="rounds")
predict("04-halving-5", "Halving on 5 ranks: how many rounds?", unit="rounds")

# %%
# %%px
halving = {}
for p in (4, 5):
    found = halving[p] = seen(halving_all_reduce, p)
    assert rank >= p or found["x"] == p * (p + 1) / 2
    told(f"halving, p = {p}", found)

# %%
settle("04-halving-4", lambda: cluster.pull("halving[4]['rounds']")[0])
settle("04-halving-5", lambda: cluster.pull("halving[5]['rounds']")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# Four ranks: 12,000, then 6,000, and both again: 36,000 bytes, as in a ring of four, in 4 rounds in place of 6. On 1024 ranks 20 in place of 2046. Five ranks: rank 0 also sends the whole
# sum to rank 4, and there are two more rounds.
# </details>
#
# The halves are Rabenseifner's (Thakur et al. 2005): MPI libraries use them for large tensors; gloo has them, and `torch.distributed` does not call them. Why rings, then? A rank of a ring
# talks to two neighbours, by the same wires all the time. Here in every round all ranks send at once to *other* partners; in the first half of x goes half the ranks away, and where many such
# messages share a wire, they wait for each other. And p should be a power of two.
#
# ## What each rank sends
#
# In a ring, in each of $2(p-1)$ rounds a rank sends one chunk, an $S/p$ of a tensor of $S$ bytes. Together:
#
# $$ 2 \, \frac{p-1}{p} \, S $$
#
# There is a way which looks simple and is often written by accident: **gather everything**. Each rank sends its whole x to each other one, and everyone adds up.

# %% tags=["setup"]
# %%px --setup
def gather_everything(x, group):
    me, p = place(group)
    own, others = x.clone(), [peer for peer in range(p) if peer != me]
    works = [dist.isend(own, group=group, group_dst=peer) for peer in others]
    for peer in others:
        add_from(peer, x, group)
    for work in works:
        work.wait()

# %%
# %%px
ways = {"star": star_all_reduce, "tree": tree_all_reduce, "ring": ring_all_reduce,
        "gather": gather_everything,
        "halving": halving_all_reduce}
measured = {way: {} for way in ways}
for way, call in ways.items():
    for p in groups:
        found = seen(call, p)
        assert rank >= p or found["x"] == p * (p + 1) / 2
        measured[way][p] = found["bytes_sent"] / 24000
    told(way, found)

# %% [markdown]
# All five give the same sum, on 2, 3, 4 and 5 ranks.
#
# **Predict.** A learner has written an all-reduce that gathers everything instead of a ring. The values are right, so only the bytes can show the difference. What is the smallest number of ranks on which the busiest rank sends a different number of bytes than in a ring?

# %%
predict("04-test",
        "To tell a ring from gathering everything, a test of bytes needs at least ...",
        ["2 ranks", "3 ranks", "4 ranks", "5 ranks"])

# %%
from manyhands.plots.collectives import busiest, busiest_table

measured = cluster.pull("measured")[0]
def whole(p):  # the largest power of two
    return 2 ** (p.bit_length() - 1)

formulas = {"star": lambda p: p - 1, "tree": lambda p: (p - 1).bit_length(),
            "ring": lambda p: 2 * (p - 1) / p, "gather": lambda p: p - 1,
            "halving": lambda p: 2 * (whole(p) - 1) / whole(p) + (p > whole(p))}
print("tensors that the busiest rank sends: measured / formula")
print(busiest_table(measured, formulas, more=(16, 1000)))
busiest(measured, formulas)

# %%
def enough():
    """The smallest number of ranks on which the measured bytes differ."""
    least = min(p for p in measured["ring"]
                if abs(measured["ring"][p] - measured["gather"][p]) > 0.01)
    return f"{least} ranks"

settle("04-test", enough)

# %% [markdown]
# <details><summary>Why?</summary>
#
# On two ranks all five ways send one tensor, because a rank has only one partner and each of the two needs the other's x. From three ranks on the ring sends less, and the difference grows. Since $(p-1)/p$ is always below 1, the ring
# never sends more than two tensors, on any number of ranks. No algorithm can do better for all ranks at the same time, as long as it is the ranks that add (Patarasuk and Yuan 2009). The star's bytes grow with p, and so do the bytes of
# gathering everything, where *every* rank is as busy as the star's middle.
# </details>
#
# **Mistake 3: right values by the wrong algorithm.** A test of values passes star and gather just as it passes the ring, and on two ranks even a test of bytes does. Look at the ledger, on more than two ranks, as the lab's check does.
#
# ## The price of the ring
#
# Bytes are not all. Each round also costs a *latency*: the time until the first byte arrives, however small the message.

# %%
from manyhands import simulate  # all units take the rounds of a pattern from it

patterns = {"tree": "tree", "ring": "ring", "halving": "halving and doubling"}
print("ranks   tree rounds, tensors   ring rounds, tensors   halving rounds, tensors")
for p in (4, 64, 1024):
    rounds = {way: sum(count for count, n_bytes in simulate.rounds(pattern, p, 24000))
              for way, pattern in patterns.items()}
    print(f"{p:>5}" + "".join(f"{rounds[way]:>14}, {formulas[way](p):<7.3f}"
                              for way in patterns))

# %% [markdown]
# | | rounds | bytes of the busiest rank | good for |
# |---|---|---|---|
# | star | $p$ | $(p-1)S$ | nothing but the first explanation |
# | tree | at most $2\lceil\log_2 p\rceil$ | $\lceil\log_2 p\rceil\,S$ | small tensors, many ranks: latency counts |
# | ring | $2(p-1)$ | $2\frac{p-1}{p}S$ | large tensors: bytes count |
# | halving and doubling, p a power of two | $2\log_2 p$ | $2\frac{p-1}{p}S$ | both, where the network bears it |
# | gather | 1 | $(p-1)S$ | numbers so few that nothing counts |
# | a switch that adds | 2 | about $S$ | machines that have one (NVLS, SHARP) |
#
# The tree's sum can take a round less than its broadcast, because a rank that waits for two messages may get both in one round. On 5 ranks the ledger has seen 5 rounds, not 6. In the same way the table
# lets $p - 1$ messages arrive at a rank in one round. The literature mostly counts with *one port*, where a rank receives one message at a time (Thakur et al. 2005). By that count the gather takes
# $p - 1$ rounds and the star $2(p-1)$, and that is nearer to what a large number of messages really costs. The last row is not ours to build. Each rank sends its x to a switch once and receives the sum once, which is half of a
# ring's bytes, because the ranks no longer do the adding (Graham et al. 2016).
#
# When is a ring the wrong choice? For a loss value or a flag, because it takes 2046 rounds on 1024 ranks for four bytes. (A slow rank is not the ring's fault: it delays every synchronous all-reduce.) Unit 05
# measures what a round and a byte cost on your machine, and finds the size at which tree and ring cross.
#
# ## The real ones
#
# No one writes rings for training, because **gloo** (CPU) and **NCCL** (NVIDIA GPUs) have all of it. gloo's all-reduce is a ring, unless its caller asks for a different algorithm.
#
# NCCL chooses by size and by wiring. Its ring runs through all GPUs, and it makes several rings, one for each *channel*, each with a part of the tensor. On a node with eight network cards each ring leaves the node by a different
# one, so all cards are used ([nccl 412](https://github.com/NVIDIA/nccl/issues/412)). Many clusters wire card $i$ of all nodes to one switch, which is called a *rail*. Its tree is not ours, but *two* binary trees over the nodes, each for half of x, in small pieces that follow each other (a
# *pipeline*). A node in the middle of one tree is a leaf of the other, so none sends more than about $2S$, at a latency that grows like the logarithm of their number (Sanders et al. 2009). Inside a node there is a chain. If
# GPUs are connected by an NVSwitch, the switch can add (NVLS, since Hopper), and SHARP does the same in InfiniBand switches. `torch.distributed` calls gloo and NCCL by the same names:
#
# | each rank has | you want | call | in training |
# |---|---|---|---|
# | rank 0 has x | x on all | `broadcast` | one start for all |
# | a part of a sum | the sum on rank 0 | `reduce` | a figure for the log |
# | a part of a sum | the sum on all | `all_reduce` | gradients |
# | a part of a sum | a chunk of the sum on each | `reduce_scatter` | gradients when states are sharded (unit 16) |
# | a chunk | all chunks on all | `all_gather` | parameters when states are sharded |
# | a chunk for each | a chunk from each | `all_to_all` | tokens to experts (unit 11), tables of embeddings |
#
# Take what gives each rank what it needs, and no more. If links inside a node are faster than links between nodes, these calls make a *hierarchy*: a reduce-scatter inside each node, an all-reduce between nodes, and an all-gather inside
# each node (unit 05).
#
# `reduce_scatter` and `all_gather` take lists of tensors. Large programs, such as FSDP, mostly use `reduce_scatter_single` and `all_gather_single`, which take one tensor that holds all parts, so nothing has to be copied
# together. (Before PyTorch 2.13 their names were `reduce_scatter_tensor` and `all_gather_into_tensor`.) Are all of them the same as our ring?

# %%
# %%px
draw = torch.Generator().manual_seed(rank)
ours = torch.randint(-9, 10, (40,), generator=draw).float()
x = ours.to(device, copy=True)
theirs, mine, parts = x.clone(), x.new_empty(8), [x.new_empty(8) for _ in range(size)]
ring_all_reduce(ours, groups[5])
dist.all_reduce(theirs)
dist.reduce_scatter(mine, list(x.chunk(size)))
dist.all_gather(parts, mine)
own, whole = x.new_empty(8), torch.empty_like(x)
dist.reduce_scatter_single(own, x)
dist.all_gather_single(whole, own)
if rank == 0:
    print("all_reduce equals our ring:", torch.equal(theirs.cpu(), ours))
    print("reduce_scatter, then all_gather, equals all_reduce:",
          torch.equal(torch.cat(parts), theirs))
    print("the same with single tensors:", torch.equal(whole, theirs))

# %% [markdown]
# Whole numbers, so equal to the last bit. With other numbers two algorithms round differently, for they add in another order. What must hold is that all *ranks* have the same
# bits, or their models drift apart. In the ring they do: each chunk is summed up in one place, and copied from there.

# %%
# %%px
x = torch.rand(40, generator=torch.Generator().manual_seed(rank))
ring, star = x.clone(), x.clone()
ring_all_reduce(ring, groups[5])
star_all_reduce(star, groups[5])
first = ring.clone()
dist.broadcast(first, group=groups[5], group_src=0)
print("ring: the same bits as on rank 0:", torch.equal(ring, first),
      "  as the star, to 1e-5:", torch.allclose(ring, star, atol=1e-5))

# %% [markdown]
# The ledger cannot look inside gloo. It counts a collective of `torch.distributed` with the messages of a textbook algorithm, and says so:

# %%
# %%px
with Ledger() as ledger:
    dist.all_reduce(torch.ones(6000, device=device))
if rank == 0:
    print(ledger.table())

# %% [markdown]
# > **On GPUs.** `init_process_group("nccl")`, a GPU of its own for each rank (NCCL refuses two on one; 2.30 has an experimental way), `torch.cuda.set_device` before the
# > first call, tensors on the GPU and contiguous. The collectives above are the same; the messages are not. A call returns when it is *enqueued*: `send` before x has gone; `wait()` makes
# > the GPU's stream wait, not Python. There are no tags: messages of a pair meet in order. `isend` and `recv` of our ring can hang, for the first message of a pair is a
# > meeting and a pair has one queue: start both with one `dist.batch_isend_irecv`. A hang shows later, at a line that reads a value, and a watchdog ends the process after ten minutes.

# %% [markdown]
# ## What has aged
#
# <details><summary>Older talks and articles, and what is left of them</summary>
#
# This course grew out of older talks and articles. What they say of collectives, in our words, and what is left of it:
#
# * *"Parameter server, or peer to peer."* A talk sets them side by side; peer to peer, GPUs exchange gradients directly. Each with each is `gather` above. What has
#   come into use is the ring and the tree, in which a rank talks with a few others only. Parameter servers have a unit of their own, 08.
# * *"On 1024 GPUs more than 20 % of the time goes into communication."* The talk's number, not ours. The bytes of a rank are not what grows: 1.6 tensors on 5
#   ranks, 1.998 on 1024. Rounds do, and so does waiting for the slowest. Overlap with the backward pass hides much of it (unit 06).
# * *"Horovod broadcasts with MPI."* So it was. Today gloo can carry it, and MPI need not be installed (unit 10).
# * *"`nccl` is the backend for GPUs."* Still so. On the CPU it is gloo.
# * *`CollectiveAllReduceStrategy` in `tf.contrib`.* Gone with `tf.contrib`; its heir is `MultiWorkerMirroredStrategy` (unit 07).
# </details>

# %% [markdown]
# ## What you can say now
#
# * *Star, tree, ring, halving:* all from `send` and `recv`, for any number of ranks. A reduce is a broadcast backwards.
# * *Cost:* a tree has few rounds, a ring few bytes; halving and doubling has both, for a power of two, and has another partner in each round.
# * *$2(p-1)/p$:* p - 1 rounds of a p-th, twice; never more than two tensors.
# * *Parts:* all-reduce = reduce-scatter + all-gather = reduce + broadcast. Take the smallest that does.
# * *Three mistakes:* all send first (a deadlock); chunks off by one (wrong sums, no error); gather everything (right values, p/2 times the bytes).
#
# **Now the lab:** write the ring for sizes that do not divide, any dtype, any group, and let the ledger judge it. Then unit 05 for the time it takes, and unit 06 to hide it.
#
# **References.** P. Patarasuk, X. Yuan 2009, *Bandwidth optimal all-reduce algorithms for clusters of workstations*, J. Parallel Distrib. Comput. 69(2).
# R. Thakur, R. Rabenseifner, W. Gropp 2005, *Optimization of collective communication operations in MPICH*, Int. J. High Perform. Comput. Appl. 19(1).
# P. Sanders, J. Speck, J. L. Träff 2009, *Two-tree algorithms for full bandwidth broadcast, reduction and scan*, Parallel Computing 35(12).
# R. L. Graham et al. 2016, *Scalable hierarchical aggregation protocol (SHArP)*, [COM-HPC](https://doi.org/10.1109/COMHPC.2016.006).
# P. Goyal et al. 2017, *Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour*, [arXiv 1706.02677](https://arxiv.org/abs/1706.02677).
# A. Sergeev, M. Del Balso 2018, *Horovod: fast and easy distributed deep learning in TensorFlow*, [arXiv 1802.05799](https://arxiv.org/abs/1802.05799).
# NVIDIA, [NCCL: collective operations](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/collectives.html).

# %%
cluster.stop()
