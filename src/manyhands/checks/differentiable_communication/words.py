"""The words of unit 11's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "messages": {
        "gradients": (2, "gradients of round trips equal one process's, in groups of 4, 3 and 2"),
        "bytes": (1, "each gradient is sent once, and nothing else"),
        "order": (1, "two messages whose backward passes run in opposite orders keep their own gradients, and nobody hangs"),
    },
    "broadcast": {
        "sum": (1, "the root's gradient is the sum of all ranks', for every root, in groups of 4, 3 and 2"),
        "others": (1, "the gradient of what the others handed in is zero"),
        "bytes": (1, "backward moves (p - 1) * n numbers"),
    },
    "allgather": {
        "sum": (2, "each rank's gradient is the sum, over all ranks, of the gradients of its own piece, in groups of 4, 3 and 2"),
        "bytes": (1, "backward moves p * (p - 1) * n numbers"),
    },
    "connect": {
        "round-trip": (1, "one backward on each rank reaches every layer: gradients equal one process's, on 4, 3 and 2 ranks"),
        "fan-out": (1, "one backward on rank 0 reaches its own loss and every piece that it sent, on 4, 3 and 2 ranks"),
    },
    "ring": {
        "values": (1, "each rank has what the rank before it has sent, in groups of 4, 3 and 2"),
        "rehearsal": (1, "a rehearsal for GPUs finds nothing, and each rank has sent one message to the next"),
    },
}

NOT_CONTIGUOUS = ("A tensor of this call is not contiguous: a transposed gradient is not, nor is torch.empty_like of it. To send, send gradient.contiguous(); "
                  "to receive, make room with torch.empty(shape, dtype=...).")

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "incorrect number of gradients": "backward returns one gradient for each argument of forward after ctx: the tensor's first, None for the others.",
        "invalid gradient at index 0": "The gradient does not have the shape of the forward's input. Receive into a tensor of ctx.shape, and return it in the "
                                       "place of x.",
        "returned a gradient different than None": "A gradient stands in the wrong place: the first one belongs to the first argument of forward.",
        "invalid gradient at index": "A gradient stands in the wrong place: the first one belongs to the first argument of forward.",
        "ensors must be contiguous": NOT_CONTIGUOUS,
        "has to be contiguous": NOT_CONTIGUOUS,
        "more than one element of the written-to tensor": "Backward has written into a gradient that it was given. That of a plain sum is one number for all places, and every gradient still belongs to "
                                                          "its caller: work on a copy, gradient.clone(memory_format=torch.contiguous_format).",
        "Pair is not connected": "A rank sends to itself, or receives from itself. Ranks are counted in the group here: is the group handed to every call, and the rank as group_src or group_dst?",
        "is not part of group": "Ranks are counted in the group here: use group_src and group_dst.",
        "should not be the same as the rank": "Ranks are counted in the group here: use group_src and group_dst. `src` and `dst` name a rank of the world, and here it was this rank itself.",
        "is invalid group rank": "Ranks are counted in the group here: use group_src and group_dst.",
        "not Connected": "pseudo_connect returns a tuple, and the tuple was used as a tensor. Unpack it: own_loss, = functions.pseudo_connect(delegate, own_loss).",
        "'Connected' object has no attribute": "pseudo_connect returns a tuple, and the tuple was used as a tensor. Unpack it: own_loss, = functions.pseudo_connect(delegate, own_loss).",
        "did not wait for: keep what isend returns": "Plain dist.isend is not enough in backward: what it returns is dropped when backward ends, and the message with it. "
                                                     "`post` keeps it.",
        "'list' object has no attribute 'wait'": "batch_isend_irecv returns a list of works: for work in ...: work.wait().",
        "float32": "A gradient has the dtype of its tensor, float64 here: torch.empty(shape) alone is float32. Make room with dtype=ctx.dtype.",
    },
    "hang": "Every gradient that one rank sends, another must receive, with the same tag, and in the same group, in which ctx.peer is counted: group_src=ctx.peer. (src= would be a rank of the world.)",
    "order hang": "The two ranks go backward in opposite orders, and one waits for the other: in Recv.backward, start to send with `post`, which does not "
                  "wait; in Send.backward, receive what was posted.",
    "group": "Do all ranks of the group make the same calls in backward, and is group=ctx.group given to each?",
    "no gradient": "The tensor has no gradient: backward returned None in its place.",
    "other gradient": "The values are wrong: look at who sends what to whom, and at the shape.",
    "gradient written into": "Recv.backward has changed the gradient that it was given, which its caller still has: send it, and leave it as it is.",
    "divided by ranks": "The gradient is too small, by the number of ranks or its square: nothing is divided here, a gradient goes back as it is.",
    # messages
    "zero gradient": "The gradient is zero: Send.backward must receive it from the other rank. The gradient of the delegate says nothing.",
    "with the delegate's": "The gradient of the delegate was added. It says nothing: it is 1 where backward begins at the delegate. Return only what has come.",
    "one message only": "This is the gradient of one message only. Autograd adds up those of all messages, if each backward receives its own.",
    "swapped": "The gradients of the two messages are swapped: receive each by the tag of its own message (ctx.tag on both sides).",
    "too much sent": "{sent:g} numbers were sent in backward, {right:g} are enough: only Recv.backward sends, and only the gradient.",
    "too little sent": "{sent:g} numbers were sent in backward, {right:g} are needed.",
    # broadcast
    "no gradient at root": "The root has no gradient: backward returned None for x. The sum belongs there.",
    "own only": "This is the root's own gradient. The other ranks used x too: their gradients must be added.",
    "spoiled": "The sum is right, but backward has written it into the gradient that it was given, which its caller still has. Reduce a copy: gradient.clone(memory_format=torch.contiguous_format).",
    "spoiled and wrong": "Backward has written into a gradient that it was given. Its caller still has it, perhaps for several outputs, and it may be transposed or expanded in memory, where a "
                         "collective writes wrong numbers. Work on a copy: gradient.clone(memory_format=torch.contiguous_format).",
    "rounded": "The values are right to about 7 digits: something on the way is float32, and a gradient has the dtype of its tensor, float64 here.",
    "by memory": "The numbers were added up in the order of memory, and the gradients of some ranks are transposed in memory, because clone() and empty_like keep the layout of their tensor. Make the gradient "
                 "contiguous before it is sent: gradient.clone(memory_format=torch.contiguous_format).",
    "spoiled elsewhere": "A rank that is not the root has written into the gradient that backward was given, which its caller still has: dist.reduce writes on every rank, and so does zero_(). Work on "
                         "a copy, and return new zeros.",
    "mean": "The gradient is {p} times too small: the mean. The transpose of a broadcast is a sum; nothing divides by the number of ranks.",
    "one of them": "This is the gradient of a single rank. Gathering is not enough: the root needs the sum of all.",
    "zero at root": "The gradient at root {root} is zero. Is the sum made at ctx.root, and not always at rank 0?",
    "sum everywhere": "Every rank returns the sum. What the others handed in was overwritten, so their gradient is zero.",
    "sum at 0": "Rank 0 of the group returns the sum, though the root is {root}. Only the root's x was used; the gradient of the others' is zero.",
    "own elsewhere": "A rank that is not the root returns a gradient of its own. What it handed in was overwritten by the broadcast: its gradient is zero.",
    "not zero": "A rank that is not the root (root {root}) returns a gradient that is not zero, though nothing depends on what it handed in.",
    "broadcast moves more": "{sent} numbers were moved among {p} ranks, {right} are enough. Only the root needs the sum: dist.reduce. An all-reduce, or gathering "
                            "on all ranks, gives it to those who do not need it.",
    "broadcast moves less": "Only {sent} numbers were moved among {p} ranks; every rank but the root has a gradient that the root does not know: {right}.",
    # allgather
    "own slice": "This is the gradient that this rank itself has for its own piece. The others used the piece too: their gradients must come here and be added.",
    "divided": "The gradient is {p} times too small. That each of {p} ranks used the piece is no mistake to correct: the gradients are summed.",
    "summed here": "These are this rank's gradients of all pieces, added up. gradients[r] belongs to rank r's piece: it must go there.",
    "own pieces gathered": "These are the gradients that each rank has for its own piece, gathered and added up: an allgather, as in the article's table. Rank {me} needs, from "
                           "every rank, the gradient of piece {me}.",
    "one slice": "This is the gradient that a single rank has for the piece. The gradients of all ranks must be added.",
    "wrong piece": "This is the gradient of another rank's piece. Rank {me} of the group needs the one of piece {me}; ranks are counted in the group.",
    "allgather moves more": "{sent} numbers were moved among {p} ranks, {right} are enough. Each rank needs only the gradients of its own piece: an all-to-all, or a "
                            "reduce-scatter.",
    "allgather moves less": "Only {sent} numbers were moved among {p} ranks; each has a gradient for each of the others: {right}.",
    # connect
    "wrong value": "The value is wrong: forward already differs from one process.",
    "not connected": "{name} has no gradient: rank 0's backward never reaches the send behind it. Hand the delegate on, with delegate_variable or pseudo_connect.",
    "cut": "{name} has no gradient: nothing came back to rank 0's send. On {ranks}, backward does not lead from what round_trip returns to the recv: "
           "`.detach()`, `.data` and torch.no_grad() cut the graph.",
    "lost gradient": "A gradient came for a send that backward never reached: the graph is not connected. Hand its delegate on, with delegate_variable or "
                     "pseudo_connect.",
    # ring
    "nothing came": "The function returns no tensor of x's shape: return what has come.",
    "x overwritten": "x itself is no longer what it was: what comes was received into it, while it was still to be sent. Make room for what comes, with torch.empty_like(x).",
    "own piece": "This is the rank's own x: return what came from the rank before.",
    "from the next": "This is what the next rank has. The ring goes to the next one, so receive from the one before.",
    "other piece": "This is not what the rank before has sent. Has the work been waited for? Are ranks counted in the group (group_dst, group_src, group_peer)?",
    "ring hang": "gloo waits here, too: each message needs a rank that receives it, in this group, in which ranks are counted (group_dst, group_src, group_peer).",
    "ring backwards": "Nothing hangs, but the ring goes the wrong way round: each rank has sent to the one before, and not to the next.",
    "rehearsed": "With NCCL it {severity}. What to do: {remedy}.",
    "not a ring": "Nothing hangs, but these are not the messages of a ring: each rank sends one, to the next. A collective moves more.",
    "communication error": "The ranks did not come together; the text says who waited for whom.",
}

HINTS = {
    "11-messages": (
        "Turn the arrows round: who has sent now receives, from the same rank, with the same tag. What shape and dtype does the gradient of x have, and what kept them for you in ctx? "
        "backward returns as many things as forward was given, in the same order.",
        "Send.backward: make room with torch.empty(ctx.shape, dtype=ctx.dtype), fill it by dist.recv (group, group_src and tag from ctx), return (gradient, None, None, None). Recv.backward: "
        "post(gradient.contiguous(), ctx.peer, ctx.tag, ctx.group), then return a zero (or None) for the delegate, and None five times."),
    "11-broadcast": (
        "Row root of the transpose is all ones: the root gets the sum of all gradients, and every other rank a zero. Which collective makes a sum on one rank only? And whose tensor does it write into?",
        "total = gradient.clone(memory_format=torch.contiguous_format); dist.reduce(total, group=ctx.group, group_dst=ctx.root). It overwrites total; on the other ranks the result is not to be "
        "used: return torch.zeros_like(total) there, and None for root and group."),
    "11-allgather": (
        "gradients[r] is what this rank knows of rank r's piece, so it must go to rank r. What comes in is, from every rank, what it knows of your piece. Which call brings piece r to rank r, on all "
        "ranks at once? And what is left to do with what came?",
        "torch.stack(gradients) is one tensor with a row for each rank; dist.all_to_all_single(incoming, outgoing, group=ctx.group) sends row r to rank r. Return incoming.sum(dim=0), None."),
    "11-ring": (
        "Every rank begins with the same call and waits in it for the next rank, which does the same: a circle. Either some rank must begin with the other call, or both go to NCCL at once. "
        "Which function of torch.distributed hands over several sends and receives together?",
        "both = [dist.P2POp(dist.isend, x, group=group, group_peer=...), dist.P2POp(dist.irecv, came, group=group, group_peer=...)], then "
        "for work in dist.batch_isend_irecv(both): work.wait()."),
    "11-connect": (
        "Begin at what each rank returns and go backward by hand. A recv leads on to the delegate that it was given. A rank that has its own loss and several sends needs an edge from the loss to each "
        "delegate. What does a rank return that only sends?",
        "recv takes delegate_variable=. own_loss, = functions.pseudo_connect(delegate, own_loss) has the loss's value and reaches both; do it again for each send, with its own result. A rank that "
        "only sends returns what send returned."),
}
