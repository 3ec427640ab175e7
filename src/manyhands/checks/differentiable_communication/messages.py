"""The words of unit 11's checks: what each criterion says, the likely mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "messages": {
        "gradients": (
            2,
            (
                "the gradients of round trips equal what a single process computes, in groups of 4,"
                " 3 and 2"
            ),
        ),
        "bytes": (1, "each gradient is sent once, and nothing else is sent"),
        "order": (
            1,
            (
                "two messages whose backward passes run in opposite orders keep their own "
                "gradients, and no rank hangs"
            ),
        ),
    },
    "broadcast": {
        "sum": (
            1,
            (
                "the root's gradient is the sum over all ranks, for every root, in groups of 4, 3 "
                "and 2"
            ),
        ),
        "others": (1, "on the other ranks, the gradient of x is zero"),
        "bytes": (1, "backward moves (p - 1) * n numbers"),
    },
    "allgather": {
        "sum": (
            2,
            (
                "each rank's gradient is the sum, over all ranks, of the gradients of this rank's "
                "piece, in groups of 4, 3 and 2"
            ),
        ),
        "bytes": (1, "backward moves p * (p - 1) * n numbers"),
    },
    "connect": {
        "round-trip": (
            1,
            (
                "one backward on each rank reaches every layer, and the gradients equal what a "
                "single process computes, on 4, 3 and 2 ranks"
            ),
        ),
        "fan-out": (
            1,
            (
                "one backward on rank 0 reaches its own loss and every piece that it sent, on 4, 3 "
                "and 2 ranks"
            ),
        ),
    },
    "ring": {
        "values": (1, "each rank has what the rank before it has sent, in groups of 4, 3 and 2"),
        "rehearsal": (
            1,
            "a rehearsal for GPUs finds nothing, and each rank has sent one message to the next",
        ),
    },
}

NOT_CONTIGUOUS = (
    "A tensor of this call is not contiguous, as a transposed gradient is not, nor is "
    "torch.empty_like of it. Therefore, send gradient.contiguous(), and receive into "
    "torch.empty(shape, dtype=...)."
)
IN_THE_GROUP = "Ranks are counted in the group here, so use group_src and group_dst."
A_TUPLE = (
    "pseudo_connect returns a tuple, and the tuple was used as a tensor. Unpack it, as in own_loss,"
    " = functions.pseudo_connect(delegate, own_loss)."
)
WRONG_PLACE = (
    "A gradient is in the wrong place, because the first one belongs to the first argument of "
    "forward."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "incorrect number of gradients": (
            "backward must return one gradient for each argument of forward after ctx, "
            "first the tensor's gradient, and None for the others."
        ),
        "invalid gradient at index 0": (
            "The gradient does not have the shape of forward's input. Receive into a tensor "
            "of ctx.shape, and return it as the gradient of x."
        ),
        "returned a gradient different than None": WRONG_PLACE,
        "invalid gradient at index": WRONG_PLACE,
        "ensors must be contiguous": NOT_CONTIGUOUS,
        "has to be contiguous": NOT_CONTIGUOUS,
        "more than one element of the written-to tensor": (
            "Backward has written into a gradient that it was given. The "
            "gradient of a plain sum is one number for all positions, "
            "and every gradient still belongs to its caller, so work on "
            "a copy, "
            "gradient.clone(memory_format=torch.contiguous_format)."
        ),
        "Pair is not connected": (
            "A rank sends to itself, or receives from itself. Since ranks are counted in the "
            "group here, is the group passed to every call, and the rank as group_src or "
            "group_dst?"
        ),
        "is not part of group": IN_THE_GROUP,
        "should not be the same as the rank": IN_THE_GROUP
        + " `src` and `dst` name a rank of the world, which was this rank itself here.",
        "is invalid group rank": IN_THE_GROUP,
        "not Connected": A_TUPLE,
        "'Connected' object has no attribute": A_TUPLE,
        "did not wait for: keep what isend returns": (
            "Plain dist.isend is not enough in backward, because what it "
            "returns is dropped when backward ends, and the message with it, "
            "whereas `post` keeps it."
        ),
        "'list' object has no attribute 'wait'": (
            "batch_isend_irecv returns a list of works, so call work.wait() for each work in it."
        ),
        "float32": (
            "A gradient has the dtype of its tensor, which is float64 here, but torch.empty(shape) "
            "alone is float32, so make room with dtype=ctx.dtype."
        ),
    },
    "hang": (
        "For every gradient that one rank sends, another must receive, with the same tag and in the"
        " same group. Since ctx.peer is counted in the group, use group_src=ctx.peer. (src= would "
        "be a rank of the world.)"
    ),
    "order hang": (
        "The two ranks go backward in opposite orders, so one waits for the other. To avoid this, "
        "in Recv.backward, start to send with `post`, which does not wait. In Send.backward, "
        "receive what was posted."
    ),
    "group": (
        "Do all ranks of the group make the same calls in backward, and is group=ctx.group passed "
        "to each call?"
    ),
    "no gradient": "The tensor has no gradient, because backward returned None for it.",
    "other gradient": (
        "The values are wrong, so look at which rank sends what to which rank, and at the shape."
    ),
    "gradient written into": (
        "Recv.backward has changed the gradient that it was given, although its caller still has "
        "it, so send it without changing it."
    ),
    "divided by ranks": (
        "The gradient is too small by the number of ranks or its square. Divide nothing here, "
        "because a gradient goes back as it is."
    ),
    # messages
    "zero gradient": (
        "The gradient is zero, but Send.backward must receive it from the other rank, since the "
        "delegate's gradient tells nothing."
    ),
    "with the delegate's": (
        "The gradient of the delegate was added. It tells nothing, since it is 1 if backward begins"
        " at the delegate, so return only what was received."
    ),
    "one message only": (
        "This is the gradient of one message only. Autograd adds up the gradients of all messages, "
        "if each backward receives its own."
    ),
    "swapped": (
        "The gradients of the two messages are swapped. Receive each by the tag of its message, "
        "which is ctx.tag on both sides."
    ),
    "too much sent": (
        "{sent:g} numbers were sent in backward, although {right:g} are enough. Only Recv.backward "
        "must send, and it must send only the gradient."
    ),
    "too little sent": "{sent:g} numbers were sent in backward, but {right:g} are needed.",
    # broadcast
    "no gradient at root": (
        "The root has no gradient, because backward returned None for x instead of the sum."
    ),
    "own only": (
        "This is the root's own gradient. The other ranks used x too, so their gradients must be "
        "added."
    ),
    "spoiled": (
        "The sum is right, but backward has written it into the gradient that it was given, which "
        "its caller still has. Instead, reduce a copy, "
        "gradient.clone(memory_format=torch.contiguous_format)."
    ),
    "spoiled and wrong": (
        "Backward has written into a gradient that it was given. Its caller still has it, perhaps "
        "for several outputs, and it may be transposed or expanded in memory, so that a collective "
        "writes wrong numbers. Instead, work on a copy, "
        "gradient.clone(memory_format=torch.contiguous_format)."
    ),
    "rounded": (
        "The values are right to about 7 digits, as if something on the way were float32. A "
        "gradient has the dtype of its tensor, which is float64 here."
    ),
    "by memory": (
        "The numbers were added up in the order of memory, but the gradients of some ranks are "
        "transposed in memory, because clone() and empty_like keep the layout of their tensor. "
        "Make the gradient contiguous before it is sent, with "
        "gradient.clone(memory_format=torch.contiguous_format)."
    ),
    "spoiled elsewhere": (
        "A rank that is not the root has written into the gradient that backward was given, which "
        "its caller still has. Since dist.reduce writes on every rank, and so does zero_(), work "
        "on a copy, and return new zeros."
    ),
    "mean": (
        "The gradient is too small by a factor of {p}, because it is the mean. The transpose of a "
        "broadcast is a sum, and nothing divides by the number of ranks."
    ),
    "one of them": (
        "This is the gradient of a single rank. Gathering is not enough, because the root needs the"
        " sum of all gradients."
    ),
    "zero at root": (
        "The gradient at root {root} is zero. Is the sum made at ctx.root, and not always at "
        "rank 0?"
    ),
    "sum everywhere": (
        "This rank returns the sum, although it is not the root. What it handed in was overwritten,"
        " so its gradient is zero."
    ),
    "sum at 0": (
        "Rank 0 of the group returns the sum, although the root is {root}. Only the root's x was "
        "used, so the gradient of x is zero elsewhere."
    ),
    "own elsewhere": (
        "A rank that is not the root returns its own gradient. However, what it handed in was "
        "overwritten by the broadcast, so the gradient of x is zero there."
    ),
    "not zero": (
        "A rank that is not the root (root {root}) returns a gradient that is not zero, although "
        "nothing depends on what it handed in."
    ),
    "broadcast moves more": (
        "{sent} numbers were moved among {p} ranks, although {right} are enough. Only the root "
        "needs the sum, so use dist.reduce. An all-reduce, or gathering on all ranks, also gives "
        "it to ranks that do not need it."
    ),
    "broadcast moves less": (
        "Only {sent} numbers were moved among {p} ranks, instead of {right}. Every rank except the "
        "root has a gradient that the root does not know."
    ),
    # allgather
    "own slice": (
        "This is the gradient that this rank itself has for its own piece. The other ranks used the"
        " piece too, so receive their gradients and add them."
    ),
    "divided": (
        "The gradient is too small by a factor of {p}. Although each of {p} ranks used the piece, "
        "nothing must be corrected, because the gradients are summed."
    ),
    "summed here": (
        "These are this rank's gradients of all pieces, added up. Since gradients[r] belongs to "
        "rank r's piece, send it there."
    ),
    "own pieces gathered": (
        "These are the gradients that each rank has for its own piece, gathered and added up, which"
        " is an allgather, as in the article's table. Rank {me} needs, from every rank, the "
        "gradient of piece {me}."
    ),
    "one slice": (
        "This is the gradient that a single rank has for the piece, but the gradients of all ranks "
        "must be added."
    ),
    "wrong piece": (
        "This is the gradient of a different rank's piece. Rank {me} of the group needs the "
        "gradient of piece {me}, because ranks are counted in the group."
    ),
    "allgather moves more": (
        "{sent} numbers were moved among {p} ranks, although {right} are enough. Each rank needs "
        "only the gradients of its piece, so use an all-to-all or a reduce-scatter."
    ),
    "allgather moves less": (
        "Only {sent} numbers were moved among {p} ranks, instead of {right}. Each rank has a "
        "gradient for each of the others."
    ),
    # connect
    "wrong value": (
        "The value is wrong, so forward already differs from what a single process computes."
    ),
    "not connected": (
        "{name} has no gradient, because rank 0's backward never reaches the send behind it. Pass "
        "the delegate on, with delegate_variable or pseudo_connect."
    ),
    "cut": (
        "{name} has no gradient, because nothing returned to rank 0's send. On {ranks}, backward "
        "does not lead from what round_trip returns to the recv, perhaps because `.detach()`, "
        "`.data` or torch.no_grad() cut the graph."
    ),
    "lost gradient": (
        "A gradient arrived for a send that backward never reached, because the graph is not "
        "connected. Pass its delegate on, with delegate_variable or pseudo_connect."
    ),
    # ring
    "nothing came": (
        "The function returns no tensor of x's shape. It must return what this rank has received."
    ),
    "x overwritten": (
        "x itself has changed, as if the incoming message had been received into it while it was "
        "still to be sent. Receive into a separate tensor, torch.empty_like(x)."
    ),
    "own piece": "This is the rank's own x. Return what was received from the rank before.",
    "from the next": (
        "This is what the next rank has. Each rank sends to the next one, so receive from the one "
        "before."
    ),
    "other piece": (
        "This is not what the rank before has sent. Has the work been waited for? Are ranks counted"
        " in the group (group_dst, group_src, group_peer)?"
    ),
    "ring hang": (
        "gloo waits here, too, because each message needs a rank that receives it, in this group, "
        "in which ranks are counted (group_dst, group_src, group_peer)."
    ),
    "ring backwards": (
        "Nothing hangs, but the ring goes the wrong way round, because each rank has sent to the "
        "one before instead of the next."
    ),
    "rehearsed": "With NCCL it {severity}. What to do: {remedy}.",
    "not a ring": (
        "Nothing hangs, but these are not the messages of a ring, in which each rank sends one, to "
        "the next. (A collective moves more.)"
    ),
    "communication error": "The ranks did not meet, and the text says which rank waited for which.",
}

HINTS: Hints = {
    "11-messages": (
        (
            "Reverse the arrows, so that the rank that has sent now receives, from the same rank "
            "and with the same tag. What shape and dtype does the gradient of x have, and what "
            "kept them for you in ctx? backward returns as many things as forward was given, in "
            "the same order."
        ),
        (
            "In Send.backward, make room with torch.empty(ctx.shape, dtype=ctx.dtype), fill it with"
            " dist.recv (group, group_src and tag from ctx), and return (gradient, None, None, "
            "None). In Recv.backward, call post(gradient.contiguous(), ctx.peer, ctx.tag, "
            "ctx.group), and then return a zero (or None) for the delegate, and None five times."
        ),
    ),
    "11-broadcast": (
        (
            "Row root of the transpose contains only ones, so the root gets the sum of all "
            "gradients, and every other rank gets a zero. Which collective computes a sum on one "
            "rank only, and into whose tensor does it write?"
        ),
        (
            "Make total = gradient.clone(memory_format=torch.contiguous_format), and call "
            "dist.reduce(total, group=ctx.group, group_dst=ctx.root), which overwrites total. On "
            "the other ranks, the result must not be used, so return torch.zeros_like(total) "
            "there, and None for root and group."
        ),
    ),
    "11-allgather": (
        (
            "gradients[r] is what this rank knows about rank r's piece, so it must go to rank r. In"
            " return, every rank sends you what it knows about your piece. Which call brings piece "
            "r to rank r, on all ranks simultaneously, and what must you do with what was "
            "received?"
        ),
        (
            "torch.stack(gradients) is one tensor with a row for each rank, and "
            "dist.all_to_all_single(incoming, outgoing, group=ctx.group) sends row r to rank r. "
            "Finally, return incoming.sum(dim=0), None."
        ),
    ),
    "11-ring": (
        (
            "Every rank begins with the same call and waits in it for the next rank, which does the"
            " same, so they wait in a circle. Either some rank must begin with the other call, or "
            "both calls must be passed to NCCL together. Which function of torch.distributed "
            "passes several sends and receives together?"
        ),
        (
            "Make both = [dist.P2POp(dist.isend, x, group=group, group_peer=...), "
            "dist.P2POp(dist.irecv, came, group=group, group_peer=...)], and then call work.wait() "
            "for each work in dist.batch_isend_irecv(both)."
        ),
    ),
    "11-connect": (
        (
            "Begin at what each rank returns, and go backward by hand. A recv leads on to the "
            "delegate that it was given. A rank that has its own loss and several sends needs an "
            "edge from the loss to each delegate. What must a rank that only sends return?"
        ),
        (
            "A recv takes the delegate as delegate_variable=. own_loss, = "
            "functions.pseudo_connect(delegate, own_loss) has the loss's value and reaches both. "
            "Do this again for each send, with the send's result. A rank that only sends returns "
            "what send returned."
        ),
    ),
}
