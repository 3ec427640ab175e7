"""The messages of unit 00's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "place": {
        "here": (1, "rank, node and local rank are right on all four ranks"),
        "elsewhere": (1, "the same function is right in larger worlds, and without GROUP_RANK"),
    },
    "diagnose": {
        "absent": (1, "the ranks that missed a barrier are named"),
        "chain": (1, "the absent rank at the end of a chain of arrows is named"),
        "circle": (1, "the ranks of a circle are named, and the ranks outside it are not"),
    },
    "exchange": {
        "four": (
            1,
            (
                "in a ring of all four ranks, every rank gets the previous rank's value, and no "
                "rank hangs"
            ),
        ),
        "smaller": (
            1,
            (
                "the same holds in rings of three and of two ranks, in any order, while the other "
                "ranks take no part"
            ),
        ),
        "messages": (1, "each rank sends one message and receives one"),
    },
    "recover": {
        "world": (
            1,
            (
                "after a fault, an all-reduce over all ranks gives the right sum, even if no "
                "process group was left"
            ),
        ),
        "shards": (1, "every rank has its own saved numbers back"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "undefined": (
        "{name} is not defined on the ranks. Run its cell, and leave `%%px --setup` in its first "
        "line. If it is now a text cell, which has no [ ] on its left, click on it, press Esc and "
        "then Y, so that it becomes a code cell again."
    ),
    "raised": "{name} raised {error}",
    "endless": "{name} did not end within {seconds} s.",
    # where_am_i
    "three ints": (
        "The function must return three whole numbers, which are the rank, the node and the local "
        "rank."
    ),
    "text": "Environment variables are text, so make numbers of them with int(...).",
    "group rank": (
        "There is no GROUP_RANK here, so compute the node from RANK and LOCAL_WORLD_SIZE."
    ),
    "swapped": "The node and the local rank are swapped.",
    "two per node": "This is right only for 2 ranks per node, so read LOCAL_WORLD_SIZE.",
    "not read": (
        "This is the rank's place in your own cluster. Read os.environ inside the function, so that"
        " it is read each time the function is called."
    ),
    "other place": (
        "Since each node has consecutive ranks, the node is the number of times that "
        "LOCAL_WORLD_SIZE goes into RANK."
    ),
    # diagnose
    "no hang": (
        "The check could not make its own fault on this cluster. Run the notebook again from the "
        "top."
    ),
    "pair": 'Return a pair, in which "absent" or "circle" comes first and the ranks second.',
    "arrows": "{answer} for the arrows {edges}",
    "wrong kind absent": (
        "A rank that others wait for does not wait itself, so this is not a circle."
    ),
    "wrong kind circle": "Every rank that is waited for is waiting, too, so no rank is absent.",
    "waits itself": "Rank {rank} waits itself, for rank {other}, so follow that arrow.",
    "not awaited": "Rank {rank} has finished, but no arrow leads to it, so no rank waits for it.",
    "outside": "Rank {rank} waits for the circle, but no rank in the circle waits for it.",
    "missing": "Rank {rank} is missing from your answer.",
    "repeated": (
        "Rank {rank} appears more than once in your answer. Name each rank once, however many "
        "arrows lead to it."
    ),
    # exchange
    "not a tensor": "exchange must return a tensor with the shape and dtype of `value`.",
    "own": "This is the rank's own value, and not the value of the previous rank.",
    "following": (
        "This is the value of the following rank. Either the direction of the ring is reversed, or "
        "the order of `members` was changed."
    ),
    "in the world": (
        "This is the value of a rank that is not this rank's neighbour. Find the previous rank in "
        "`members`."
    ),
    "too early": (
        "No rank gave this value, so perhaps it was read before it had arrived, or overwritten "
        "before it had left. Wait for the requests that isend and irecv return."
    ),
    "changed": "exchange has changed `value`, but it must leave it as it was.",
    "counts": "{sends} x send, {receives} x recv, {others} other calls",
    "too many": (
        "Each rank needs only one send and one recv, because it has a value for only one neighbour."
    ),
    "not run": "This was not run, because the larger ring must work first.",
    "not all rings": "Messages are counted only if all three rings come to an end.",
    # recover
    "stopped": (
        "The cluster was stopped, so run the notebook again from the top. Do not stop it in "
        "recover, because healing has already made new ranks."
    ),
    "no group": "There is no process group on this rank. recover must make one if none exists.",
    "twice": (
        "A process group already exists, because nothing had happened yet, or because healing has "
        "run the --setup cells. Ask dist.is_initialized() first."
    ),
    "no shard": (
        "There is no variable `shard` on this rank. Since variables were lost with the old ranks, "
        "bring it back from `saved`."
    ),
    "no tensor": "`shard` must be a tensor.",
    "other tensor": (
        "`shard` must be what it was, a tensor of whole numbers with one axis. torch.tensor(...) "
        "makes such a tensor from a list of whole numbers."
    ),
    "another's shard": (
        "These are the numbers of rank {owner}, but each rank must take saved[its own rank]."
    ),
    "other shard": "These are not the saved numbers of this rank.",
    "wrong sum": "The sum over the ranks is wrong.",
}

HINTS: Hints = {  # {name: (where to look, nearly the code)}
    "00-place": (
        """
With 3 ranks on each node, ranks 0, 1 and 2 are on node 0, and ranks 3, 4 and 5 are on node 1. Which two operations on
whole numbers give the node and the local rank? Since environment variables are text, what turns them into numbers?
""",
        """
Read os.environ["RANK"] and os.environ["LOCAL_WORLD_SIZE"] inside the function, each through int(...). The node is
rank // ranks_per_node, and the local rank is what is left, rank % ranks_per_node. Return the three numbers in order.
""",
    ),
    "00-diagnose": (
        """
An absent rank is waited for but does not wait, so it is the second number of an arrow and is not in `waiting`. Look for
such ranks first, because there is a circle only if there are none. From every rank that waits, a walk along the arrows
then ends in the circle.
""",
        """
absent = {b for a, b in edges} - set(waiting). If there are any, they are the answer, sorted. Otherwise, take
after = dict(edges), since one arrow of each rank is enough. Start at any rank that waits, go on with here = after[here]
and write down where you have been. The circle begins where you arrive for the second time, and what you wrote down
before that place is outside the circle.
""",
    ),
    "00-exchange": (
        """
At least one rank must send before it receives. "Rank 0 sends first" is not enough, because rank 0 may not be in the
ring. Either some members send first while others receive first (by their place in `members`), or every member begins to
send without waiting for it.
""",
        """
Call request = dist.isend(value, dst=following), then dist.recv(received, src=previous), and then request.wait(),
because only after that may the caller change `value`. Alternatively, members at even places send and then receive,
while members at odd places receive and then send.
""",
    ),
    "00-recover": (
        """
A new rank has only what you have given to it, and this holds for imports, too. It needs the saved numbers, a process
group if there is none, and its own shard. This kernel can give values to the ranks, and run a cell on them.
""",
        """
Call cluster.push({"saved": saved}), and then cluster.px("...") with a cell that imports torch, and torch.distributed as
dist. The cell makes the process group with dist.init_process_group("gloo") if not dist.is_initialized(), and it sets
shard = torch.tensor(saved[dist.get_rank()]).
""",
    ),
}
