"""The words of unit 00's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "place": {
        "here": (1, "rank, node and local rank are right on all four ranks"),
        "elsewhere": (1, "the same function is right in larger worlds, and without GROUP_RANK"),
    },
    "diagnose": {
        "absent": (1, "ranks that missed a barrier are named"),
        "chain": (1, "at the end of a chain of arrows stands the rank that did not come"),
        "circle": (1, "the ranks of a circle are named, and those outside it are not"),
    },
    "exchange": {
        "four": (1, "a ring of all four ranks: everyone gets the previous rank's value, nobody hangs"),
        "smaller": (1, "rings of three and of two ranks, in any order, while the other ranks do something else"),
        "messages": (1, "each rank sends one message and receives one"),
    },
    "recover": {
        "world": (1, "after a fault all ranks compute a right all-reduce, also where no process group was left"),
        "shards": (1, "every rank has its own saved numbers back"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "undefined": "{name} is not defined on the ranks. Run its cell, and leave `%%px --setup` in its first line. If it is a text cell now, without [ ] "
                 "on its left, click on it, press Esc and then Y: it is a code cell again.",
    "raised": "{name} raised {error}",
    "endless": "{name} did not come to an end within {seconds} s.",
    # where_am_i
    "three ints": "The function must return three whole numbers: rank, node, local rank.",
    "text": "Environment variables are text. Make numbers of them with int(...).",
    "group rank": "There is no GROUP_RANK here: compute the node from RANK and LOCAL_WORLD_SIZE.",
    "swapped": "Node and local rank have changed places.",
    "two per node": "This is right only for 2 ranks per node: read LOCAL_WORLD_SIZE.",
    "not read": "This is the rank's place in your own cluster. Read os.environ inside the function, each time it is called.",
    "other place": "With consecutive ranks on each node, the node is how often LOCAL_WORLD_SIZE goes into RANK.",
    # diagnose
    "no hang": "The check could not make its own fault on this cluster. Run the notebook again from the top.",
    "pair": "Return a pair: \"absent\" or \"circle\", and the ranks.",
    "arrows": "{answer} for the arrows {edges}",
    "wrong kind absent": "One of the ranks waits for nobody: it is no circle.",
    "wrong kind circle": "Everyone who is waited for waits, too: nobody is absent.",
    "waits itself": "Rank {rank} waits itself, for rank {other}: follow that arrow.",
    "not awaited": "Rank {rank} has finished, but no arrow leads to it: nobody waits for it.",
    "outside": "Rank {rank} waits for the circle, but nobody in the circle waits for it.",
    "missing": "Rank {rank} is missing from your answer.",
    "repeated": "Rank {rank} appears more than once in your answer. Name each rank once, however many arrows lead to it.",
    # exchange
    "not a tensor": "exchange must return a tensor with the shape and dtype of `value`.",
    "own": "This is the rank's own value.",
    "following": "This is the value of the following rank: the direction of the ring is turned round, or the order of `members` was changed.",
    "in the world": "The neighbours were counted in the world, not in `members`.",
    "too early": "This is not a value that anybody gave: it was read before it had come, or overwritten before it had left. "
                 "Wait for the requests that isend and irecv return.",
    "changed": "exchange must leave `value` as it was.",
    "counts": "{sends} x send, {receives} x recv, {others} other calls",
    "too many": "The right values, but by more messages than needed: each rank has something to tell one neighbour only.",
    "not run": "Not run: mend the larger ring first.",
    "not all rings": "This is counted when all three rings come to an end.",
    # recover
    "stopped": "The cluster was stopped: run the notebook again from the top. Do not stop it in recover: healing has already made new ranks.",
    "no group": "There is no process group on this rank: recover must make one where none is.",
    "twice": "There is a process group already: nothing had happened yet, or healing has run the --setup cells. Ask dist.is_initialized() first.",
    "no shard": "There is no variable `shard` on this rank. Variables were lost with the old ranks: bring it back from `saved`.",
    "no tensor": "`shard` must be a tensor.",
    "other tensor": "`shard` is not what it was: whole numbers, along one axis. A list of whole numbers becomes that by torch.tensor(...).",
    "another's shard": "These are the numbers of rank {owner}: each rank takes saved[its own rank].",
    "other shard": "These are not the saved numbers of this rank.",
    "wrong sum": "The sum over the ranks is wrong.",
}

HINTS = {  # {name: (where to look, nearly the code)}
    "00-place": ("""
With 3 ranks on each node, ranks 0, 1, 2 are on node 0, ranks 3, 4, 5 on node 1. Which two operations on whole numbers make the node
and the local rank of it? Environment variables are text: what makes a number of them?
""", """
os.environ["RANK"] and os.environ["LOCAL_WORLD_SIZE"], each through int(...), inside the function. The node is rank // ranks_per_node,
the local rank what is left: rank % ranks_per_node. Return the three numbers in their order.
"""),
    "00-diagnose": ("""
An absent rank is waited for, and does not wait: it is the second number of an arrow, and not in `waiting`. Look for such ranks first.
Only where there are none is there a circle. And from every rank that waits, a walk along the arrows must end in it.
""", """
absent = {b for a, b in edges} - set(waiting). If there are any, that is the answer, sorted.
Else after = dict(edges): one arrow of each rank is enough. Start at any rank that waits and go on with here = after[here], writing down
where you have been. Where you come for the second time, the circle begins: what you wrote down before that lies outside it.
"""),
    "00-exchange": ("""
Somebody has to send before receiving. "Rank 0 sends first" is not enough: rank 0 may not be in the ring. Two ways are open: some
members send first and others receive first (by their place in `members`), or everyone begins to send without waiting for it.
""", """
request = dist.isend(value, dst=following), then dist.recv(received, src=previous), then request.wait(): only after that may the caller
change `value`. Or: members at even places send, then receive; those at odd places receive, then send.
"""),
    "00-recover": ("""
A new rank has nothing that you have not given to it, imports included. What does it need: the saved numbers, a process group if there
is none, its own shard. This kernel can give values to the ranks, and run a cell on them.
""", """
cluster.push({"saved": saved}), then cluster.px("...") with a cell that imports torch and torch.distributed as dist; makes the process
group with dist.init_process_group("gloo") if not dist.is_initialized(); and sets shard = torch.tensor(saved[dist.get_rank()]).
"""),
}
