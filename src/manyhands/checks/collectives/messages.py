"""The messages of unit 04's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "broadcast": {
        "values": (
            1,
            "every rank has the root's numbers, for every root, in groups of 5, 3 and 2 ranks",
        ),
        "once": (1, "p - 1 messages are sent in all, so that each rank but the root gets x once"),
        "tree": (
            1,
            "the broadcast takes log2 p rounds, rounded up, and no rank sends more often than that",
        ),
    },
    "reduce-scatter": {
        "values": (
            2,
            (
                "rank r holds the sum of chunk r, for float32, float64 and int64, even if chunks "
                "are uneven or empty"
            ),
        ),
        "ring": (1, "each rank sends p - 1 messages of one chunk, to the next rank only"),
    },
    "all-gather": {
        "values": (
            1,
            "all chunks are on all ranks, in their own places, even if they are uneven or empty",
        ),
        "ring": (1, "each rank sends p - 1 messages of one chunk, to the next rank only"),
    },
    "all-reduce": {
        "values": (
            2,
            (
                "x is the sum on every rank of 5, 3 and 2, even if p does not divide its size or "
                "exceeds it"
            ),
        ),
        "bytes": (1, "each rank sends 2 (p - 1)/p of the tensor's bytes"),
        "ring": (1, "each rank sends 2 (p - 1) messages, all of them to the next rank"),
    },
    "halving": {
        "values": (
            2,
            "x is the sum on every rank of 4 and of 2, whatever numbers the ranks put in",
        ),
        "bytes": (1, "each rank sends 2 (p - 1)/p of the tensor's bytes, in 2 log2 p rounds"),
    },
    "cost": {
        "bytes": (
            1,
            "the predicted bytes of the busiest rank are what the ledger counts, for all four ways",
        ),
        "rounds": (
            1,
            "the predicted rounds of the tree broadcast and of the ring are what the ledger counts",
        ),
    },
}

_DTYPE = (
    "What is received has the dtype of what was sent, whereas torch.empty(n) alone is float32. Make"
    " room with torch.empty_like(chunk)."
)
_SIZE = (
    "What one rank sends does not fit what the other makes room for. Do both mean the same chunk? "
    "If p does not divide, chunks differ in size, so make room for the chunk that arrives, and not "
    "for the one that leaves."
)
_IN_PLACE = (
    "The list has the right tensors, but the memory from which the chunks were cut does not. Write "
    "into a chunk, with += or copy_, instead of putting a new tensor into the list."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "is not part of group": (
            "Ranks are counted inside the group here, so use group_dst and group_src instead of "
            "dst and src."
        ),
        "should not be the same as the rank": (
            "A rank sends to itself. Since ranks are counted inside the group here, "
            "use group_dst and group_src, and give group=group to every call."
        ),
        "is invalid group rank": (
            "Ranks are counted inside the group, from 0 to p - 1, so rank 0 follows the last one "
            "(% p)."
        ),
        "index out of range": (
            "Chunks are counted from 0 to p - 1, so chunk 0 follows the last one (% p)."
        ),
        "sent int64": _DTYPE,
        "sent float64": _DTYPE,
        "must match the size of tensor": _SIZE,
        "Shape and dtype must be the same": _SIZE,
        "can't be cast": "A sum of whole numbers is whole, so nothing must be divided here.",
        "keep what isend returns": (
            "Keep what isend returns, receive, and then call its wait(), because a message "
            "whose work handle has been dropped may never leave."
        ),
        "Keep what isend and irecv return": (
            "Keep what isend and irecv return, and call wait() on each before the "
            "tensor is read, changed or dropped. If a work handle is dropped, its "
            "message may never leave or arrive."
        ),
        "in barrier": (
            "Some ranks are not in this group, so they wait in the check's barrier. Does a rank of "
            "the group wait for one of them? Give group=group to every call, and count with "
            "dist.get_rank(group) and dist.get_world_size(group)."
        ),
    },
    "hang": (
        "If every rank first sends and then receives, no rank receives. Start to send with "
        "dist.isend, receive, and then wait() for the sending. (Keep what isend returns, because a "
        "message whose work handle has been dropped may never leave.)"
    ),
    "partner": (
        "There is no such rank in the group. Since partners are counted inside the group, from 0 to"
        " p - 1, use dist.get_rank(group), and group=group in every call."
    ),
    "fewer pieces": (
        "There is no such chunk. If p does not divide well, x.chunk(p) gives fewer than p pieces "
        "(for 4 numbers and p = 5, it gives four). In contrast, x.tensor_split(p) always gives p, "
        "although some of them may be empty."
    ),
    ("any", "other"): "The values are wrong in a group of {p} ranks ({n} numbers, {dtype}).",
    # broadcast
    (
        "broadcast",
        "own",
    ): (
        "Rank {me} of the group still has its own numbers, because nothing was received, or it was "
        "not written into x."
    ),
    (
        "broadcast",
        "of rank",
    ): (
        "These are the numbers of rank {last} of the group, although the root is {root}. Count "
        "ranks from the root, that is, (rank - root) % p."
    ),
    # reduce-scatter
    (
        "reduce-scatter",
        "own",
    ): (
        "Rank {me}'s chunk holds only its own numbers, so nothing was added. In which round "
        "does it arrive? In this ring, it is the last of p - 1."
    ),
    (
        "reduce-scatter",
        "twice",
    ): (
        "Rank {me}'s own numbers are in the sum twice. Since its chunk holds them from the "
        "beginning, they need not be added again. (Perhaps they went all the way round, "
        "although p - 1 rounds are enough.)"
    ),
    (
        "reduce-scatter",
        "mean",
    ): (
        "This is the mean, but a reduce-scatter gives the sum. If you want a mean, divide "
        "afterwards."
    ),
    (
        "reduce-scatter",
        "some of them",
    ): (
        "Only {number} of {p} ranks are in the sum. There must be p - 1 rounds, and "
        "each must send the chunk that was just added to."
    ),
    (
        "reduce-scatter",
        "some of them, before",
    ): (
        "Only {number} of {p} ranks are in the sum, and they are on the wrong "
        "side. Send to rank me + 1, and receive from me - 1."
    ),
    (
        "reduce-scatter",
        "elsewhere",
    ): (
        "Rank {me} holds the complete sum of chunk {elsewhere} instead of chunk {me}, as "
        "if every chunk number were off by the same amount. Which chunk must leave in the "
        "first round, so that the last one to arrive is your own?"
    ),
    ("reduce-scatter", "only in the list"): _IN_PLACE,
    # all-gather
    (
        "all-gather",
        "never filled",
    ): (
        "Chunk {bad} was never filled on rank {me}. In each round, pass on what arrived in "
        "the round before, instead of your own chunk again."
    ),
    (
        "all-gather",
        "overwritten",
    ): (
        "Rank {me}'s own chunk, chunk {me}, was right at the start, but it has been "
        "overwritten. Which chunk leaves in the first round? In the tutorial's ring, it is "
        "chunk me + 1, because that is the complete one there. Here, however, it must be "
        "chunk me."
    ),
    (
        "all-gather",
        "chunk",
    ): (
        "The place of chunk {bad} holds chunk {last}. In round s, the chunk of the rank s + 1 "
        "places before this one must arrive."
    ),
    ("all-gather", "only in the list"): _IN_PLACE,
    (
        "all-gather",
        "other",
    ): (
        "Chunk {bad} is wrong on rank {me}. It must arrive as its owner has it, because an "
        "all-gather adds nothing up."
    ),
    # all-reduce
    (
        "all-reduce",
        "unchanged",
    ): (
        "x is unchanged, but the sum must be written into x itself, in place. Cut x into "
        "chunks that are views of it (x.view(-1)), and write into them."
    ),
    (
        "all-reduce",
        "mean",
    ): (
        "This is the mean, that is, the sum divided by {p}. An all-reduce gives the sum, so divide "
        "afterwards if you want a mean."
    ),
    (
        "all-reduce",
        "twice",
    ): "This rank's own numbers are in the sum twice, although x holds them from the beginning.",
    ("all-reduce", "without its own"): "This rank's own numbers are not in the sum.",
    ("all-reduce", "doubled"): "This is twice the sum, as if it had been computed twice.",
    (
        "all-reduce",
        "times p",
    ): "This is {p} times the sum, because what had already been summed was summed again.",
    (
        "all-reduce",
        "rounded",
    ): (
        "The sum has been rounded to float32 on its way. Keep the dtype of x, which is {dtype} "
        "here."
    ),
    (
        "all-reduce",
        "rest",
    ): (
        "The last {rest} of {n} numbers are wrong, because {p} ranks with n // p numbers each "
        "leave a remainder. x.tensor_split(p) cuts all of x."
    ),
    (
        "all-reduce",
        "one chunk",
    ): (
        "Only one chunk of x is the sum, so the reduce-scatter is done, but the all-gather is "
        "missing."
    ),
    # halving and doubling
    (
        "halving",
        "misplaced",
    ): (
        "If x is cut into {p} parts, part {bad}, counted from 0, holds the sum of part "
        "{elsewhere}. Two partners have kept the *same* half, so no rank has summed up the other "
        "half. The values would not show this if a rank had the same number everywhere. In each "
        "round, which of the two partners keeps the lower half?"
    ),
    (
        "halving",
        "rounded",
    ): (
        "The sum has been rounded to float32 on its way. Keep the dtype of x, which is {dtype} "
        "here."
    ),
    (
        "halving",
        "unchanged",
    ): "x is unchanged, but the sum must be written into x itself, in place.",
    # messages
    (
        "messages",
        "half used",
    ): (
        "These are half as many bytes again as {p} ranks need, so something is sent that is not "
        "used. Look at what is sent in each round, and at what of it is added."
    ),
    (
        "messages",
        "more than a half",
    ): (
        "These are more bytes than halving and doubling need on {p} ranks. In the first "
        "round, half of x is sent, then a quarter, and so on."
    ),
    (
        "messages",
        "half of it",
    ): (
        "These are half of the bytes that {p} ranks need. Are both done, the halving and the "
        "doubling, and in the dtype of x?"
    ),
    (
        "messages",
        "not halving",
    ): (
        "The bytes are right, but the number of rounds is not. Halving takes log2 p rounds "
        "and so does doubling, which makes {rounds} here."
    ),
    (
        "messages",
        "library",
    ): (
        "The {call} of torch.distributed does the work here. Use it in your programs, but in this "
        "exercise, build it from send and recv."
    ),
    (
        "messages",
        "more",
    ): (
        "There are more messages than needed among {p} ranks, because a rank that already has x "
        "need not get it again."
    ),
    ("messages", "fewer"): "There are fewer messages than {p} ranks need. Has every rank got x?",
    (
        "messages",
        "not whole",
    ): "The messages do not hold the whole tensor, or they hold more than it.",
    (
        "messages",
        "star",
    ): (
        "The root itself sends to all others, one after another, while the others have nothing to "
        "do. In a tree, every rank that has x helps to send."
    ),
    (
        "messages",
        "often",
    ): "A rank sends more often than in a tree, whose depth is {depth} for {p} ranks.",
    (
        "messages",
        "chain",
    ): (
        "x is handed on from rank to rank, so the last one waits for all {p} - 1 messages. In a "
        "tree, the number of ranks that have x doubles in each round."
    ),
    (
        "messages",
        "rounds",
    ): (
        "Some message has to wait for too many others, although {depth} rounds are enough for {p} "
        "ranks."
    ),
    (
        "messages",
        "not next",
    ): (
        "In a ring, a rank sends only to the next rank. (Sending every chunk directly to its "
        "owner moves as few bytes in fewer rounds, but it is a different algorithm, in which all "
        "ranks send to all others simultaneously.)"
    ),
    (
        "messages",
        "too many rounds",
    ): "There are more messages than rounds, since a ring of {p} ranks needs {halves}.",
    (
        "messages",
        "too few rounds",
    ): "There are fewer messages than rounds, since a ring of {p} ranks needs {halves}.",
    (
        "messages",
        "gathers",
    ): (
        "These are as many bytes as if every rank sent its whole tensor to every other rank, "
        "which gathers everything, then sums. The bytes of each rank then grow with p. Instead, "
        "send chunks, and add them up on the way."
    ),
    (
        "messages",
        "serial",
    ): (
        "So many messages follow each other because a rank receives before it sends. In a ring of "
        "{p} ranks, all send in every round. Therefore, begin to send with isend, then receive, "
        "and then wait for the sending."
    ),
    (
        "messages",
        "uneven",
    ): (
        "This rank sends {ratio} times as many bytes as a rank of a ring does on average, as if "
        "its chunks were larger. Cut the numbers of x, x.view(-1), instead of its rows."
    ),
    (
        "messages",
        "one place",
    ): (
        "The sum seems to go through one place, because this rank sends {ratio} times as many "
        "bytes as each rank does in a ring. Meanwhile, the others wait for its link."
    ),
    (
        "messages",
        "one half",
    ): (
        "These bytes are about enough for a reduce-scatter or for an all-gather. An all-reduce "
        "is both."
    ),
    (
        "messages",
        "more bytes",
    ): (
        "The ranks send more bytes than in a ring of {p} ranks, where each rank sends one "
        "chunk in each round."
    ),
    (
        "messages",
        "fewer bytes",
    ): "These are fewer bytes than {p} ranks need. Is everything sent, and in the dtype of x?",
    # cost
    (
        "bytes",
        "all ranks",
    ): (
        "For {way!r} with {p} ranks, this is what all ranks send together. How much of it does the "
        "busiest rank send?"
    ),
    (
        "bytes",
        "numbers",
    ): (
        "For {way!r} with {p} ranks, this is a quarter of the bytes. Since n_bytes already counts "
        "bytes, do not divide it by 4."
    ),
    (
        "bytes",
        "once too often",
    ): "For {way!r} with {p} ranks, this is {p} times n_bytes, but a rank does not send to itself.",
    (
        "bytes",
        "a round too many",
    ): (
        "For {way!r} with {p} ranks, this is one message too many. If p is a power of two, "
        "all ranks have x after log2 p rounds, which is (p - 1).bit_length(), and not "
        "p.bit_length()."
    ),
    (
        "bytes",
        "both ways",
    ): (
        "For {way!r} with {p} ranks, this is twice what the busiest rank sends. Count only what is "
        "sent, and not what is received. Which ranks send in the reduce?"
    ),
    (
        "bytes",
        "one half",
    ): "For {way!r} with {p} ranks, this is one half only, but an all-reduce has two.",
    (
        "bytes",
        "not cut",
    ): (
        "For {way!r} with {p} ranks, a rank does not send all its chunks in a half, but only p - 1 "
        "of p."
    ),
    (
        "bytes",
        "p chunks",
    ): "For {way!r} with {p} ranks, a rank sends p - 1 chunks in a half, and not p or more.",
    (
        "bytes",
        "not rounded up",
    ): (
        "For {way!r} with {p} ranks, log2 p must be rounded up, because the last ranks need a "
        "round too."
    ),
    (
        "bytes",
        "one message",
    ): (
        "For {way!r} with {p} ranks, the root sends in each round of the broadcast, and not only "
        "once."
    ),
    (
        "bytes",
        "other",
    ): (
        "For {way!r} with {p} ranks and {nbytes} bytes, the busiest rank sends a different number "
        "of bytes. Which rank sends most, how often, and how much each time?"
    ),
    (
        "rounds",
        "one half",
    ): (
        "For {way!r} with {p} ranks, this is one half only, but an all-reduce has two halves, one "
        "after the other."
    ),
    (
        "rounds",
        "p rounds",
    ): "For {way!r} with {p} ranks, a chunk needs only p - 1 hops in each half to meet all ranks.",
    (
        "rounds",
        "down",
    ): (
        "For {way!r} with {p} ranks, log2 p must be rounded up, because the last ranks need a round"
        " too."
    ),
    (
        "rounds",
        "chain",
    ): (
        "For {way!r} with {p} ranks, these are the rounds of a chain. In a tree, the number of "
        "ranks that have x doubles in each round."
    ),
    (
        "rounds",
        "a round too many",
    ): (
        "For {way!r} with {p} ranks, this is one round too many. If p is a power of two, "
        "all ranks have x after log2 p rounds, which is (p - 1).bit_length(), and not "
        "p.bit_length()."
    ),
    (
        "rounds",
        "both halves",
    ): "For {way!r} with {p} ranks, a broadcast is one half only, because nothing is summed first.",
    (
        "rounds",
        "not whole",
    ): "For {way!r} with {p} ranks, rounds must be whole numbers. If you use log2 p, round it up.",
    (
        "rounds",
        "other",
    ): "For {way!r} with {p} ranks, a different number of messages must follow each other.",
}

HINTS: Hints = {
    "04-broadcast": (
        (
            "Give the ranks new numbers that are counted from the root, so that the tutorial's "
            "tree, whose root is 0, is nearly right. Which two numbers must be turned back before "
            "you send or receive?"
        ),
        (
            "me = (rank - root) % p makes the root 0. Let reach be 1, 2, 4, ... while reach < p, so"
            " that the ranks below reach have x. Each of them sends to me + reach if me + reach < "
            "p, and the ranks from reach to 2 * reach - 1 receive from me - reach. As ranks of the "
            "group, these two are (me + reach + root) % p and (me - reach + root) % p."
        ),
    ),
    "04-reduce-scatter": (
        (
            "Write down for three ranks which chunk each of them receives, beginning with the "
            "*last* round, in which it is the rank's own chunk. What a rank sends in a round is "
            "what it received in the round before."
        ),
        (
            "In round s, rank me sends chunk (me - 1 - s) % p and receives chunk (me - 2 - s) % p, "
            "which it adds to its own numbers. In the last round, where s = p - 2, this is chunk "
            "me. Make room with torch.empty_like(chunks[...]) of the chunk that arrives. Call "
            "isend, recv and wait, in this order, and then use += on the chunk."
        ),
    ),
    "04-all-gather": (
        (
            "Only a rank's own chunk is complete at the start, so this chunk leaves in the first "
            "round. After that, each rank passes on what has just arrived."
        ),
        (
            "In round s, rank me sends chunk (me - s) % p, which is its own one at first. It "
            "receives chunk (me - 1 - s) % p straight into its place, with dist.recv(chunks[...], "
            "...). Call isend, recv and wait, in this order."
        ),
    ),
    "04-all-reduce": (
        (
            "Three lines are enough, because you only cut x and call your two halves. The pieces "
            "must be views of x, in one dimension, and exactly p of them, whatever the size is. "
            "Which of torch's functions that cut promises that?"
        ),
        (
            "chunks = list(x.view(-1).tensor_split(p)) cuts any size into p views of x, although "
            "some of them may be empty. Then call ring_reduce_scatter(chunks, group) and "
            "ring_all_gather(chunks, group)."
        ),
    ),
    "04-cost": (
        (
            "For each way, find out which rank sends most, how many messages it sends, and how "
            "large each of them is. Draw five ranks. For the tree, look at both halves. In which "
            "of them does rank 0 send?"
        ),
        (
            "In the star, rank 0 sends the sum to p - 1 others. In the tree, each rank sends at "
            "most once in the reduce, whereas the root sends once a round in the broadcast. The "
            "ring has two halves of p - 1 rounds, and a rank sends a chunk of n_bytes / p in each "
            "round. In the gather, a rank sends the whole tensor p - 1 times. (p - 1).bit_length() "
            "is log2 p, rounded up."
        ),
    ),
    "04-halving": (
        (
            "Put in torch.arange(8) * 10.0 ** rank, for example, so that each place has a different"
            " sum and you see which sum is where. Write down which rank keeps which half in the "
            "second round. For the second bug, count the bytes of the first round, in which half "
            "of x should be sent."
        ),
        (
            "In round `reach`, the partners are me and me ^ reach. Of the two, the one whose bit is"
            " set, `me & reach`, keeps the upper half (`me < reach` says so only in the first "
            "round). Moreover, send `other` instead of `part`, as in mine += swapped(other, me ^ "
            "reach, group). The doubling has no bug."
        ),
    ),
}
