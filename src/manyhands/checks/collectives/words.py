"""The words of unit 04's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "broadcast": {
        "values": (1, "every rank has the root's numbers, for every root, in groups of 5, 3 and 2 ranks"),
        "once": (1, "p - 1 messages in all: each rank but the root gets x once"),
        "tree": (1, "log2 p rounds, rounded up, and no rank sends more often than that"),
    },
    "reduce-scatter": {
        "values": (2, "rank r holds the sum of chunk r, for float32, float64 and int64, uneven and empty chunks"),
        "ring": (1, "each rank sends p - 1 messages of one chunk, to the next rank only"),
    },
    "all-gather": {
        "values": (1, "all chunks are on all ranks, in their own places, uneven and empty ones too"),
        "ring": (1, "each rank sends p - 1 messages of one chunk, to the next rank only"),
    },
    "all-reduce": {
        "values": (2, "x is the sum on every rank of 5, 3 and 2, also where p does not divide, and with fewer numbers than ranks"),
        "bytes": (1, "each rank sends 2 (p - 1)/p of the tensor's bytes"),
        "ring": (1, "in 2 (p - 1) messages, all of them to the next rank"),
    },
    "halving": {
        "values": (2, "x is the sum on every rank of 4 and of 2, whatever the ranks put in"),
        "bytes": (1, "each rank sends 2 (p - 1)/p of the tensor's bytes, in 2 log2 p rounds"),
    },
    "cost": {
        "bytes": (1, "the predicted bytes of the busiest rank are those that the ledger sees, four ways"),
        "rounds": (1, "so are the predicted rounds of the tree broadcast and of the ring"),
    },
}

_DTYPE = "What is received has the dtype of what was sent, and torch.empty(n) alone is float32: make room with torch.empty_like(chunk)."
_SIZE = "What one rank sends does not fit what the other makes room for. Do both mean the same chunk? If p does not divide, chunks differ in size: make room for " \
        "the chunk that comes, not for the one that goes."
_IN_PLACE = "The list has the right tensors, but the memory from which the chunks were cut has not: write into a chunk, with += or copy_, and do not put a " \
            "new tensor in its place."

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "is not part of group": "Ranks are counted inside the group here: use group_dst and group_src in place of dst and src.",
        "should not be the same as the rank": "A rank sends to itself. Ranks are counted inside the group here: use group_dst and group_src, and give "
                                              "group=group to every call.",
        "is invalid group rank": "Ranks are counted inside the group, from 0 to p - 1: after the last one comes rank 0 again (% p).",
        "index out of range": "Chunks are counted from 0 to p - 1: after the last one comes chunk 0 again (% p).",
        "sent int64": _DTYPE, "sent float64": _DTYPE, "must match the size of tensor": _SIZE, "Shape and dtype must be the same": _SIZE,
        "can't be cast": "A sum of whole numbers is whole: nothing is to be divided here.",
        "keep what isend returns": "Keep what isend returns, receive, then call its wait(): a message whose work has been dropped may never leave.",
        "Keep what isend and irecv return": "Keep what isend and irecv return, and call wait() on each before the tensor is read, changed or dropped: where a work is dropped, its "
                                            "message may never leave or arrive.",
        "waits in barrier": "Some ranks are not in this group: they stand in the check's barrier. Does a rank of the group wait for one of them? Give group=group to "
                            "every call, and count with dist.get_rank(group) and dist.get_world_size(group).",
    },
    "hang": "If every rank first sends and then receives, nobody receives. Start to send with dist.isend, receive, then wait() for the sending. "
            "(And keep what isend returns: a message whose work has been dropped may never leave.)",
    "partner": "There is no such rank in the group. Partners are counted inside the group, from 0 to p - 1: dist.get_rank(group), and group=group in every call.",
    "fewer pieces": "There is no such chunk: x.chunk(p) gives fewer than p pieces where p does not divide well (4 numbers, p = 5: four pieces). x.tensor_split(p) always gives p, "
                    "some of them empty.",
    ("any", "other"): "The values are wrong on a group of {p} ranks ({n} numbers, {dtype}).",
    # broadcast
    ("broadcast", "own"): "Rank {me} of the group still has its own numbers: nothing was received, or not written into x.",
    ("broadcast", "of rank"): "These are the numbers of rank {last} of the group; the root is {root}. Count ranks from the root: (rank - root) % p.",
    # reduce-scatter
    ("reduce-scatter", "own"): "Rank {me}'s chunk holds its own numbers only: nothing was added. In which round does it come in? In this ring it is the last of p - 1.",
    ("reduce-scatter", "twice"): "Rank {me}'s own numbers are in the sum twice: once as they were, and once because they came all the way round. p - 1 rounds are "
                                 "enough.",
    ("reduce-scatter", "mean"): "This is the mean. A reduce-scatter gives the sum; who wants a mean divides afterwards.",
    ("reduce-scatter", "some of them"): "Only {number} of {p} ranks are in the sum: p - 1 rounds are needed, and what is sent must be the chunk that was just added to.",
    ("reduce-scatter", "some of them, before"): "Only {number} of {p} ranks are in the sum, from the wrong side: send to rank me + 1, receive from me - 1.",
    ("reduce-scatter", "elsewhere"): "Rank {me} holds the complete sum of chunk {elsewhere}, and should hold that of chunk {me}: every chunk number is off by the same. "
                                     "Which chunk must leave in the first round, so that the last one to come is your own?",
    ("reduce-scatter", "only in the list"): _IN_PLACE,
    # all-gather
    ("all-gather", "never filled"): "Chunk {bad} was never filled on rank {me}. In each round pass on what came in the round before, not your own chunk again.",
    ("all-gather", "overwritten"): "Rank {me}'s own chunk, chunk {me}, was right at the start, and has been overwritten. The first round sends another chunk than the own one: the "
                                   "tutorial's ring begins with chunk me + 1, for there that is the one that is complete. Here it is chunk me.",
    ("all-gather", "chunk"): "In the place of chunk {bad} stands chunk {last}. In round s comes the chunk of the rank s + 1 places before this one.",
    ("all-gather", "only in the list"): _IN_PLACE,
    ("all-gather", "other"): "Chunk {bad} is wrong on rank {me}: it must arrive as its owner has it. An all-gather adds nothing up.",
    # all-reduce
    ("all-reduce", "unchanged"): "x is what it was. The sum belongs into x itself, in place: cut x in chunks that are views of it (x.view(-1)), and write into them.",
    ("all-reduce", "mean"): "This is the mean: the sum divided by {p}. An all-reduce gives the sum; who wants a mean divides afterwards.",
    ("all-reduce", "twice"): "This rank's own numbers are in the sum twice.",
    ("all-reduce", "without its own"): "This rank's own numbers are not in the sum.",
    ("all-reduce", "doubled"): "This is twice the sum: it was made twice.",
    ("all-reduce", "times p"): "This is {p} times the sum: what was summed already was summed again.",
    ("all-reduce", "rounded"): "The sum has been rounded to float32 on its way. Keep the dtype of x, {dtype} here.",
    ("all-reduce", "rest"): "The last {rest} of {n} numbers are wrong: {p} ranks with n // p numbers each leave a rest. x.tensor_split(p) cuts all of it.",
    ("all-reduce", "one chunk"): "Only one chunk of x is the sum: the reduce-scatter is done, and the all-gather is missing.",
    # halving and doubling
    ("halving", "misplaced"): "In part {bad} of x, counted from 0, of {p} parts, stands the sum of part {elsewhere}. Two partners have kept the *same* half: nobody has summed up the other one. "
                              "With the same number everywhere nothing would be seen. In each round, which of the two partners keeps the lower half?",
    ("halving", "rounded"): "The sum has been rounded to float32 on its way. Keep the dtype of x, {dtype} here.",
    ("halving", "unchanged"): "x is what it was: the sum belongs into x itself, in place.",
    # messages
    ("messages", "half used"): "Half as many bytes again as {p} ranks need. The values are right: so something is sent that is not used. Look at what is sent in each round, and what of it is added.",
    ("messages", "more than a half"): "More bytes than halving and doubling need on {p} ranks. In the first round half of x is sent, then a quarter, and so on.",
    ("messages", "half of it"): "Half of the bytes that {p} ranks need. Are both done, the halving and the doubling, and in the dtype of x?",
    ("messages", "not halving"): "As many bytes as needed, in another number of rounds: halving and doubling takes log2 p rounds each, {rounds} here.",
    ("messages", "library"): "The {call} of torch.distributed does the work here. It is what you would use; here the exercise is to make it from send and recv.",
    ("messages", "more"): "More messages than needed among {p} ranks: who has x already need not get it again.",
    ("messages", "fewer"): "Fewer messages than {p} ranks need: has every rank got x?",
    ("messages", "not whole"): "The messages do not hold the whole tensor, or more than it.",
    ("messages", "star"): "The root sends to all {p} - 1 others itself, one after the other, while the others have nothing to do. In a tree, whoever has x helps to send.",
    ("messages", "often"): "A rank sends more often than in a tree, whose depth is {depth} for {p} ranks.",
    ("messages", "chain"): "x is handed on from rank to rank: the last one waits for all {p} - 1 messages. In a tree, the number of ranks that have x doubles in each "
                           "round.",
    ("messages", "rounds"): "Some message has to wait for too many others: with {p} ranks, {depth} rounds are enough.",
    ("messages", "not next"): "In a ring, a rank sends to the next rank only. (To send every chunk directly to its owner moves as few bytes, in fewer rounds; it is "
                              "another algorithm, and all ranks then send to all at once.)",
    ("messages", "too many rounds"): "More messages than rounds: a ring of {p} ranks needs {halves}.",
    ("messages", "too few rounds"): "Fewer messages than rounds: a ring of {p} ranks needs {halves}.",
    ("messages", "gathers"): "As many bytes as if every rank had sent its whole tensor to every other rank: this gathers everything, then sums. The values are right, "
                             "and the bytes of each rank grow with p. Send chunks, and add them up on the way.",
    ("messages", "serial"): "So many messages follow each other, because a rank waits for what comes before it sends. In a ring of {p} ranks all send in every "
                            "round: begin to send with isend, then receive, then wait for the sending.",
    ("messages", "uneven"): "This rank sends {ratio} times as much as the others do on average: its chunks are larger. Cut the numbers of x, x.view(-1), and not its rows.",
    ("messages", "one place"): "The sum goes through one place: this rank sends {ratio} times as much as each rank does in a ring. The others wait for its wire.",
    ("messages", "one half"): "Half of the bytes: that is a reduce-scatter, or an all-gather. An all-reduce is both.",
    ("messages", "more bytes"): "More bytes than a ring of {p} ranks sends: one chunk a round from each rank.",
    ("messages", "fewer bytes"): "Fewer bytes than a ring of {p} ranks needs. Are all chunks sent, and in the dtype of x?",
    # cost
    ("bytes", "all ranks"): "{way}, {p} ranks: this is what all ranks send together. How much of it does the busiest one send?",
    ("bytes", "numbers"): "{way}, {p} ranks: n_bytes counts bytes already, nothing is to be divided by 4.",
    ("bytes", "once too often"): "{way}, {p} ranks: a rank does not send to itself.",
    ("bytes", "a round too many"): "{way}, {p} ranks: a message too many. Where p is a power of two, all have x after log2 p rounds: that is (p - 1).bit_length(), and not "
                                   "p.bit_length().",
    ("bytes", "both ways"): "{way}, {p} ranks: this is twice what was measured. Only what is sent counts, not what is received; and who sends in the reduce?",
    ("bytes", "one half"): "{way}, {p} ranks: this is one half only. An all-reduce has two.",
    ("bytes", "not cut"): "{way}, {p} ranks: a rank does not send all its chunks in a half, but p - 1 of p.",
    ("bytes", "p chunks"): "{way}, {p} ranks: a rank sends p - 1 chunks in a half, not p or more.",
    ("bytes", "not rounded up"): "{way}, {p} ranks: log2 p is rounded up, for the last ranks need a round too.",
    ("bytes", "one message"): "{way}, {p} ranks: the root sends in each round of the broadcast.",
    ("bytes", "other"): "{way}, {p} ranks, {nbytes} bytes: the ledger says another number. Which rank sends most, how often, and how much each time?",
    ("rounds", "one half"): "{way}, {p} ranks: an all-reduce has two halves, one after the other.",
    ("rounds", "p rounds"): "{way}, {p} ranks: a chunk needs p - 1 hops to meet all ranks.",
    ("rounds", "down"): "{way}, {p} ranks: log2 p is rounded up, for the last ranks need a round too.",
    ("rounds", "chain"): "{way}, {p} ranks: these are the rounds of a chain. In a tree, the ranks that have x double in each round.",
    ("rounds", "a round too many"): "{way}, {p} ranks: where p is a power of two, all have x after log2 p rounds: that is (p - 1).bit_length(), and not p.bit_length().",
    ("rounds", "both halves"): "{way}, {p} ranks: a broadcast is one half only, nothing is summed first.",
    ("rounds", "not whole"): "{way}, {p} ranks: rounds are whole numbers. Round log2 p up.",
    ("rounds", "other"): "{way}, {p} ranks: the ledger says another number of rounds.",
}

HINTS = {
    "04-broadcast": (
        "Give the ranks other numbers, counted from the root: then the tutorial's tree, whose root is 0, is nearly right. Which two numbers must be turned back before you send or receive?",
        "me = (rank - root) % p, so that the root is 0. reach = 1, then 2, 4, ... while reach < p: the ranks below reach have x. Of those, each with me + reach < p sends to me + reach; the "
        "ranks from reach to 2 * reach - 1 receive from me - reach. Back to ranks of the group: (me + reach + root) % p, (me - reach + root) % p.",
    ),
    "04-reduce-scatter": (
        "Write down for three ranks which chunk each of them receives, beginning with the *last* round: there it is its own. What it sends in a round is what it received in the round before.",
        "In round s, rank me sends chunk (me - 1 - s) % p and receives chunk (me - 2 - s) % p, which it adds to its own numbers. In the last round, s = p - 2, that is chunk me. Make room with "
        "torch.empty_like(chunks[...]) of the chunk that comes; isend, recv, wait, in this order; then += into the chunk.",
    ),
    "04-all-gather": (
        "Only its own chunk is complete at the start: that is what leaves in the first round. Then each rank passes on what has just come in.",
        "In round s, rank me sends chunk (me - s) % p, its own one first, and receives chunk (me - 1 - s) % p straight into its place: dist.recv(chunks[...], ...). isend, recv, wait.",
    ),
    "04-all-reduce": (
        "Three lines: cut x, and call your two halves. The pieces must be views of x, in one dimension, and exactly p of them, whatever the size: which of torch's functions that cut promises that?",
        "chunks = list(x.view(-1).tensor_split(p)) cuts any size into p views of x, some of them empty if need be. Then ring_reduce_scatter(chunks, group) and ring_all_gather(chunks, group).",
    ),
    "04-cost": (
        "For each way: which rank sends most, how many messages, how large is each? Draw five ranks. For the tree, look at both halves: in which of them does rank 0 send?",
        "Star: rank 0 sends the sum to p - 1 others. Tree: in the reduce each rank sends at most once, in the broadcast the root sends once a round. Ring: two halves of p - 1 rounds, in each a "
        "chunk of n_bytes / p. Gather: p - 1 times the whole. (p - 1).bit_length() is log2 p, rounded up.",
    ),
    "04-halving": (
        "Put in torch.arange(8) * 10.0 ** rank, say: then each place has a sum of its own, and you see which sum stands where. Write down who keeps which half in the second round. For the second "
        "bug, count the bytes of the first round: a half of x should go.",
        "In round `reach` the partners are me and me ^ reach: of the two, the one whose bit is set, `me & reach`, keeps the upper half (`me < reach` says so only in the first round). And what is to "
        "be sent is `other`, not `part`: mine += swapped(other, me ^ reach, group). The doubling has no bug.",
    ),
}
