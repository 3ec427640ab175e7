# %% [markdown] unit={"minutes": 40, "ranks": 5, "framework": "torch", "title": "Collectives"}
# # 04 Collectives
#
# A *collective* is a call that all ranks make together, such as a broadcast, a reduce or an all-reduce. Each collective consists of messages between two ranks,
# and this notebook takes several collectives apart. At the end, you can
#
# * write a broadcast and an all-reduce from `send` and `recv`: as a star, as a tree, as a ring, and by halving and doubling.
# * count the rounds and messages that each of these algorithms takes, and the bytes that the busiest rank sends.
# * explain why each rank in a ring sends $2(p-1)/p$ times the tensor's size, and therefore less than two tensors for any number of ranks.
# * name the parts of an all-reduce, and choose the collective that gives each rank what it needs and no more.
# * recognise three mistakes: all ranks send first, chunks are off by one, and the right values come from the wrong algorithm.
#
# **Before:** you have done unit 00, or you can start five ranks in a different way. **Minutes:** 40 · **Ranks:** 5, which is deliberately not a power of two.

# %% [markdown]
# ## Five ranks
#
# This kernel starts the ranks, and cells that begin with `%%px` run on all five of them. The option `--setup` marks the cells that are run again if the cluster
# must be healed, which will happen in this notebook.

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
# each group holds the first p ranks
groups = {p: dist.new_group(range(p), backend="gloo") for p in (2, 3, 4, 5)}

# %% [markdown]
# We use nothing but `dist.send` and `dist.recv`, which carry a message from one rank to one other rank. The groups below use gloo and CPU tensors, even on
# machines with GPUs, because NCCL has different rules for single messages (see *The real ones*). The function `seen` runs a call on the first p ranks, and a
# ledger records its messages. `seen` then returns how many messages and bytes left the **busiest** rank, which is the rank that sends the most, and how many
# **rounds** the call took. The number of rounds is the length of the longest chain of messages in which each message had to wait for the previous one. For
# example, four sends by one rank take four rounds, whereas four messages from different ranks to one rank may travel at the same time, in one round.

# %% tags=["setup"]
# %%px --setup
def place(group):
    """Return this rank's number in the group and the size of the group."""
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
# Rank 0 has x, and all other ranks want it. The obvious way is a **star**, in which rank 0 sends x to each of them. However, the ranks that have already
# received x could help. In a **tree**, they do: in each round, every rank that has x sends it to a rank that does not have it yet.

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
    # reach is 1, 2, 4, ..., and the ranks below reach have x
    for reach in [2**k for k in range((p - 1).bit_length())]:
        if me < reach and me + reach < p:
            dist.send(x, group=group, group_dst=me + reach)
        elif reach <= me < 2 * reach:
            dist.recv(x, group=group, group_src=me - reach)

# %% [markdown]
# **Predict.** How many rounds does each of the two broadcasts take on 5 ranks, and how many on 1000 ranks? The tensor has 6000 numbers, each of which takes 4
# bytes.

# %%
# Run this cell to make your prediction.
predict("04-tree", "How many rounds does a tree broadcast take on 5 ranks?", unit="rounds")

# %%
# %%px
for name, call in (("star broadcast", star_broadcast), ("tree broadcast", tree_broadcast)):
    found = seen(call)
    assert found["x"] == 1  # the value of rank 0
    told(name, found)
tree = found["events"]

# %%
# Run this cell to compare your prediction with the outcome.
settle("04-tree", lambda: cluster.pull("found['rounds']")[0])  # the tree ran last

# %% [markdown]
# <details><summary>Why?</summary>
#
# In the star, rank 0 sends four messages, one after another, so the star takes 4 rounds. On 1000 ranks, it takes 999 rounds. In the tree, the number of ranks
# that have x doubles in each round, so 1, 2, 4 and then all 5 ranks have it. A tree therefore takes $\log_2 p$ rounds, rounded up, which is 3 rounds on 5 ranks
# and 10 on
# 1000. In both cases, $p - 1$ messages travel in total, because every rank except rank 0 must receive x once.
# </details>
#
# The next picture is a space-time diagram. It has a line for each rank and an arrow for each message.

# %%
from manyhands.plots import spacetime

tree = cluster.pull("tree")[0]
print(spacetime.table(tree))
spacetime.spacetime(tree)

# %% [markdown]
# ## Reduce, and the first all-reduces
#
# A **reduce** is a broadcast that runs backwards: we reverse the arrows, and each receiver adds what arrives to its own tensor. At the end, rank 0 has the sum.
# An **all-reduce** gives the sum to all ranks, for example by a reduce that is followed by a broadcast. We write one all-reduce along the star and one along
# the tree.

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
# The tensor has 24,000 bytes. In the star, rank 0 receives a tensor of this size from each of four ranks and then sends the sum four times, while the other
# ranks wait. In the tree, rank 0 sends the sum three times. Both numbers grow with the number of ranks, because rank 0 sends the *whole* tensor again and
# again. With the gradients of a ResNet-50, which take about 100 MB (Goyal et al. 2017), all ranks would wait for the link of this one rank.
#
# ## The ring
#
# In a **ring**, no message carries the whole tensor. We split x into p chunks, and each rank sends only to the next rank (the last rank sends to rank 0). In
# each round, *every* rank sends one chunk and adds the chunk that it receives to its own version of this chunk. After p - 1 rounds, each rank has one chunk
# that contains the sum over all ranks. This first half is called **reduce-scatter**. In p - 1 more rounds, the finished chunks travel once around the ring.
# This second half is an **all-gather**.
#
# All rounds consist of the same step, in which a rank sends to the next rank and receives from the previous one.
#
# **Predict.** All five ranks run the lines below, so each of them first sends and then receives. What happens?

# %%
# Run this cell to make your prediction.
predict("04-send-first", "What happens if all five ranks first send and then receive?",
        ["all get a tensor", "they wait in a circle", "all wait for one rank", "an error"])

# %% tags=["raises-exception"]
# %%px --patience 3
x = torch.ones(5)
dist.send(x, group=groups[5], group_dst=(rank + 1) % size)
dist.recv(x, group=groups[5], group_src=(rank - 1) % size)

# %%
# Run this cell to compare your prediction with the outcome.
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
# `send` does not return before the other side has called `recv`, because gloo waits until the receiver reports that it has room for the message. Here, however,
# the other side is in `send`, too, so no rank reaches its `recv`, and the ranks wait in a circle. Some libraries buffer a small message and let the sender
# continue (MPI may do so below a size that it chooses). With such a library, the code works in every test with small tensors and hangs with the first large
# one.
# </details>
#
# **Mistake 1: all ranks send first.** To avoid this hang, *start* sending with `isend`, then receive, and then wait until the message has been sent. In the
# meantime, the cluster has healed itself and has run the `--setup` cells again. The next cells define the step and the ring.

# %% tags=["setup"]
# %%px --setup
def pass_on(chunk, room, group):
    """Send a chunk to the next rank, and return what arrives from the previous one, which
    has the size of `room`."""
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
# To watch the ring at work, let rank r fill x with $10^r$. The digits of a sum then show which ranks have contributed to it. We print ranks as rows and chunks
# as columns, and an entry of `23` means that the numbers of ranks 2 and 3 have been added up.

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
# After one round, each rank has one chunk that contains the numbers of two ranks, and these chunks form a diagonal. After four rounds, chunk r + 1 on rank r is
# complete, with all five digits. In the first round of the all-gather, the complete chunks move on to the next rank, and after four rounds every rank has all
# of them.
# </details>
#
# **Mistake 2: off by one.** Which rank ends up with which complete chunk is a matter of convention. Here, rank r ends the first half with chunk r + 1, whereas
# MPI and NCCL give chunk r to rank r. If the two halves of a program follow different conventions, nothing hangs, but unfinished chunks travel around the ring
# and overwrite finished chunks, so some ranks' numbers are missing from the sums.
#
# <details><summary>Why a test may miss it</summary>
#
# If the program gathers the finished chunks into a new tensor, the sums are complete but end up in the wrong places. A test that uses the same numbers in all
# chunks does not notice this mistake.
# </details>
#
# A space-time diagram of three ranks shows that all of them are busy all the time.

# %%
# %%px
ring = seen(ring_all_reduce, p=3)["events"]

# %%
ring = cluster.pull("ring")[0][:3]  # the events of ranks 0, 1 and 2
print(spacetime.table(ring))
spacetime.spacetime(ring)

# %% [markdown]
# ## Halving and doubling
#
# The tree needs few rounds, and the ring needs few bytes. Can one algorithm have both advantages? In *halving and doubling*, the partner of a rank is half the
# number of ranks away. Each rank sends its partner one half of x, receives the partner's version of the other half, and adds this version to its own. Now one
# half of the ranks is responsible for the first half of x, and the other half of the ranks for the second. In both groups, the ranks continue in the same way
# with half of their half, until each rank has a p-th of the sum. On the way back, each exchange doubles the part that a rank has.

# %% tags=["setup"]
# %%px --setup
def swap(out, room, peer, group):
    """Send `out` to a partner, and return what arrives from it, which has the size of
    `room`."""
    came = torch.empty_like(room)
    work = dist.isend(out, group=group, group_dst=peer)
    dist.recv(came, group=group, group_src=peer)
    work.wait()
    return came

# %% tags=["setup"]
# %%px --setup
def halve_and_double(x, reach, group):
    """Sum x over 2 * reach ranks, in place, by halving and doubling."""
    if reach:
        me, _ = place(group)
        lower, upper = x.tensor_split(2)  # views
        mine, other = (upper, lower) if me & reach else (lower, upper)
        mine += swap(other, mine, me ^ reach, group)  # halving: a reduce-scatter
        halve_and_double(mine, reach // 2, group)
        other.copy_(swap(mine, other, me ^ reach, group))  # doubling: an all-gather

# %% [markdown]
# `me ^ reach` flips one bit of `me`. For example, with reach 2, ranks 0 and 2 are partners, and so are ranks 1 and 3. Since this pairing requires the number of
# ranks to be a power of two, the fifth rank has no partner. It gives its x to rank 0 beforehand and receives the sum afterwards.

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
# **Predict.** How many rounds does halving and doubling take on four ranks, and how many bytes does each rank send for a tensor of 24,000 bytes? What changes
# with five ranks?

# %%
# Run this cell to make your prediction.
predict("04-halving-4", "How many rounds does halving and doubling take on 4 ranks?",
        unit="rounds")
predict("04-halving-5", "How many rounds does halving and doubling take on 5 ranks?",
        unit="rounds")

# %%
# %%px
halving = {}
for p in (4, 5):
    found = halving[p] = seen(halving_all_reduce, p)
    assert rank >= p or found["x"] == p * (p + 1) / 2
    told(f"halving, p = {p}", found)

# %%
# Run this cell to compare your prediction with the outcome.
settle("04-halving-4", lambda: cluster.pull("halving[4]['rounds']")[0])
settle("04-halving-5", lambda: cluster.pull("halving[5]['rounds']")[0])

# %% [markdown]
# <details><summary>Why?</summary>
#
# On four ranks, each rank sends 12,000 bytes, then 6,000 bytes, and both amounts again on the way back. The total is 36,000 bytes, as in a ring of four ranks,
# but in 4 rounds instead of 6. On 1024 ranks, halving and doubling takes 20 rounds instead of 2046. With five ranks, rank 0 also sends the whole sum to rank 4,
# and there are two more rounds.
# </details>
#
# Halving and doubling is due to Rabenseifner (Thakur et al. 2005). MPI libraries use it for large tensors. The gloo library contains it, too, but
# `torch.distributed` does not call it. Why, then, are rings so common? A rank in a ring talks to two neighbours, always over the same wires. In halving and
# doubling, all ranks send simultaneously, and to a *different* partner in every round. In the first round, half of x travels to a partner that is half the
# number of ranks away, and messages that share a wire must wait for each other. In addition, p should be a power of two.
#
# ## What each rank sends
#
# In a ring, a rank sends one chunk in each of $2(p-1)$ rounds, and each chunk has $S/p$ of the tensor's $S$ bytes. In total, the rank sends
#
# $$ 2 \, \frac{p-1}{p} \, S $$
#
# bytes. An algorithm that looks simpler, and that is often written by accident, is to **gather everything**. Each rank sends its whole x to every other rank,
# and every rank adds up all the tensors.

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
# All five algorithms give the same sum on 2, 3, 4 and 5 ranks.
#
# **Predict.** A learner has written an all-reduce that gathers everything instead of using a ring. The values are right, so only the bytes can show the
# difference. What is the smallest number of ranks on which the busiest rank sends a different number of bytes than in a ring?

# %%
# Run this cell to make your prediction.
predict("04-test",
        "At least how many ranks must a test of bytes use to tell ring and gather apart?",
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
# Run this cell to compare your prediction with the outcome.
def enough():
    """Return the smallest number of ranks on which the measured bytes differ."""
    least = min(p for p in measured["ring"]
                if abs(measured["ring"][p] - measured["gather"][p]) > 0.01)
    return f"{least} ranks"

settle("04-test", enough)

# %% [markdown]
# <details><summary>Why?</summary>
#
# On two ranks, the busiest rank sends one tensor in all five algorithms, because a rank has only one partner and each of the two needs the other's x. From
# three ranks on, a rank in a ring sends less than a rank that gathers everything, and the difference grows. Since $(p-1)/p$ is always below 1, a rank in a ring
# never sends more than two tensors, on any number of ranks. No algorithm can do better for all ranks at the same time, as long as the ranks themselves do the
# adding (Patarasuk and Yuan 2009). With the star, the busiest rank's bytes grow with p. If you gather everything, *every* rank is as busy as the centre of the
# star.
# </details>
#
# **Mistake 3: right values by the wrong algorithm.** Star and gather pass a test of values just as the ring does, and on two ranks they even pass a test of
# bytes. Therefore, look at the ledger on more than two ranks, as the lab's check does.
#
# ## The price of the ring
#
# Bytes are not the only cost, because each round also costs a *latency*, which is the time until the first byte arrives, however small the message is.

# %%
from manyhands import simulate  # all units get the rounds of a pattern from it

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
# | tree | at most $2\lceil\log_2 p\rceil$ | $\lceil\log_2 p\rceil\,S$ | small tensors on many ranks, where latency counts |
# | ring | $2(p-1)$ | $2\frac{p-1}{p}S$ | large tensors, where bytes count |
# | halving and doubling, p a power of two | $2\log_2 p$ | $2\frac{p-1}{p}S$ | both cases, if the network can carry the messages |
# | gather | 1 | $(p-1)S$ | so few numbers that the cost does not matter |
# | a switch that adds | 2 | about $S$ | machines that have one (NVLS, SHARP) |
#
# <details><summary>How the rounds are counted</summary>
#
# The tree's sum can take one round less than its broadcast, because a rank that waits for two messages may receive both in one round. On 5 ranks, for example,
# the ledger has recorded 5 rounds for the tree all-reduce instead of 6. In the same way, the table assumes that $p - 1$ messages can arrive at a rank in one
# round. The literature mostly assumes *one port*, so that a rank receives one message at a time (Thakur et al. 2005). Under this assumption, the gather takes
# $p - 1$ rounds and the star $2(p-1)$, which is closer to what many messages really cost.
# </details>
#
# We cannot build the table's last algorithm, in which each rank sends its x to a switch once and receives the sum once. Such an all-reduce sends half as many
# bytes as a ring, because the ranks no longer do the adding (Graham et al. 2016).
#
# When is a ring the wrong choice? It is wrong for a loss value or a flag, because it takes 2046 rounds for four bytes on 1024 ranks. (A slow rank is no
# argument against rings, since it delays every synchronous all-reduce.) Unit 05 measures what a round and a byte cost on your machine, and finds the size at
# which a tree and a ring take equally long.
#
# ## The real ones
#
# You do not have to write rings for training, because **gloo** (CPU) and **NCCL** (NVIDIA GPUs) already contain all of this. gloo's all-reduce is a ring,
# unless its caller asks for a different algorithm.
#
# NCCL chooses an algorithm according to the size of the tensor and the wiring. It builds several rings through all GPUs, one for each *channel*, and each ring
# carries a part of the tensor. On a node with eight network cards, each ring leaves the node through a different card, so all cards are used
# ([nccl 412](https://github.com/NVIDIA/nccl/issues/412)). Many clusters connect card $i$ of all nodes to one switch, and these cards then form a *rail*. NCCL's
# tree differs from ours. It consists of *two* binary trees over the nodes, each tree for half of x, in small pieces that follow one another (a
# *pipeline*). A node in the middle of one tree is a leaf of the other, so no node sends more than about $2S$, and the latency grows with the logarithm of the
# number of nodes (Sanders et al. 2009). Inside a node, the ranks form a chain. If GPUs are connected by an NVSwitch, the switch can do the adding (NVLS, since
# Hopper), and SHARP does the same in InfiniBand switches. In `torch.distributed`, gloo and NCCL are called through the same functions:
#
# | each rank has | you want | call | in training |
# |---|---|---|---|
# | rank 0 has x | x on all ranks | `broadcast` | equal weights at the start |
# | a part of a sum | the sum on rank 0 | `reduce` | a figure for the log |
# | a part of a sum | the sum on all ranks | `all_reduce` | gradients |
# | a part of a sum | a chunk of the sum on each rank | `reduce_scatter` | gradients if states are sharded (unit 16) |
# | a chunk | all chunks on all ranks | `all_gather` | parameters if states are sharded |
# | a chunk for each rank | a chunk from each rank | `all_to_all` | tokens to experts (unit 11), tables of embeddings |
#
# Choose the call that gives each rank what it needs and no more. If links inside a node are faster than links between nodes, an all-reduce can be a *hierarchy*
# of these calls: a reduce-scatter inside each node, an all-reduce between nodes, and an all-gather inside each node (unit 05).
#
# `reduce_scatter` and `all_gather` take lists of tensors. Large programs, such as FSDP, mostly use `reduce_scatter_single` and `all_gather_single`, which take
# one tensor that holds all parts, so that the parts need not be copied into one tensor first. (Before PyTorch 2.13, their names were `reduce_scatter_tensor`
# and `all_gather_into_tensor`.) Do all these calls give the same result as our ring?

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
# The results are identical down to the last bit because x contains whole numbers. With fractions, two algorithms round differently, since they add in different
# orders. However, all *ranks* must have the same bits, because otherwise their models drift apart. The ring guarantees this, because the sum of each chunk is
# completed on one rank and copied from there.

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
# The ledger cannot look inside gloo. It counts a collective of `torch.distributed` as the messages of a textbook algorithm, and its table tells you so.

# %%
# %%px
with Ledger() as ledger:
    dist.all_reduce(torch.ones(6000, device=device))
if rank == 0:
    print(ledger.table())

# %% [markdown]
# > **On GPUs.** Use `init_process_group("nccl")`, one GPU per rank (NCCL refuses two ranks on one GPU; version 2.30 has an experimental way around this),
# > `torch.cuda.set_device` before the first call, and contiguous tensors on the GPU. The collectives stay the same, but the messages do not. A call returns
# > when it is *enqueued*, so `send` returns before x has left, and `wait()` makes the GPU's stream wait instead of Python. There are no tags, so the messages
# > of a pair are matched in order. The `isend` and `recv` in our ring can hang, because a pair's first message needs both ranks and a pair has one queue; start
# > both with one `dist.batch_isend_irecv`. A hang shows up on a later line that reads a value, and a watchdog ends the process after ten minutes.

# %% [markdown]
# ## What has aged
#
# <details><summary>What older talks and articles say, and what is still true</summary>
#
# This course grew out of older talks and articles. The list repeats, in our words, what they say about collectives, and adds what is still true.
#
# * *"Parameter server, or peer to peer."* A talk compares the two approaches. With peer to peer, GPUs exchange gradients directly. If every GPU sends to every
#   other GPU, this is `gather` above. In practice, the ring and the tree are used, in which a rank talks to only a few others. Parameter servers are the
#   subject of unit 08.
# * *"On 1024 GPUs more than 20 % of the time goes into communication."* This number is the talk's and not ours. The bytes that a rank sends hardly grow, from
#   1.6 tensors on 5 ranks to 1.998 on 1024. However, the number of rounds grows, and so does the time spent waiting for the slowest rank. Overlap with the
#   backward pass hides much of the communication (unit 06).
# * *"Horovod broadcasts with MPI."* This was true. Today, gloo can carry the messages, and MPI need not be installed (unit 10).
# * *"`nccl` is the backend for GPUs."* This is still true. On the CPU, the backend is gloo.
# * *`CollectiveAllReduceStrategy` in `tf.contrib`.* It has been removed together with `tf.contrib`, and its successor is `MultiWorkerMirroredStrategy` (unit
#   07).
# </details>

# %% [markdown]
# ## Summary
#
# * Star, tree, ring and halving can all be written with `send` and `recv`, for any number of ranks, and a reduce is a broadcast that runs backwards.
# * A tree needs few rounds, and a ring needs few bytes. Halving and doubling needs few of both if p is a power of two, but each rank has a different partner in
#   every round.
# * A rank in a ring sends a p-th of the tensor in each of $2(p-1)$ rounds. In total, the rank sends $2(p-1)/p$ times the tensor's size, which is never more
#   than two tensors.
# * An all-reduce can consist of a reduce-scatter and an all-gather, or of a reduce and a broadcast. Choose the smallest collective that is sufficient.
# * If all ranks send first, they are in a deadlock. If chunks are off by one, the sums are wrong without an error. If you gather everything, the values are
#   right, but each rank sends p/2 times as many bytes as in a ring.
#
# **Now the lab:** write the ring for sizes that p does not divide, for any dtype and any group, and let the ledger judge it. Afterwards, unit 05 measures the
# time that an all-reduce takes, and unit 06 hides this time.
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
