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
    "undefined": "{name} is not defined on the ranks. Run its cell, and leave `%%px --setup` in its first line.",
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
    # exchange
    "not a tensor": "exchange must return a tensor with the shape and dtype of `value`.",
    "own": "This is the rank's own value.",
    "following": "This is the value of the following rank: the direction of the ring is turned round.",
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
    "twice": "Healing had made the process group already (--setup). Ask dist.is_initialized() first.",
    "no shard": "There is no variable `shard` on this rank. Variables were lost with the old ranks: bring it back from `saved`.",
    "no tensor": "`shard` must be a tensor.",
    "another's shard": "These are the numbers of rank {owner}: each rank takes saved[its own rank].",
    "other shard": "These are not the saved numbers of this rank.",
    "wrong sum": "The sum over the ranks is wrong.",
}

HINTS = {
    "00-place": """
Environment variables are read with os.environ["RANK"], and they are text: int(...) makes a number of it.
With 3 ranks on each node, ranks 0, 1, 2 are on node 0, ranks 3, 4, 5 on node 1. So the node of a rank is rank // 3.
""",
    "00-diagnose": """
An absent rank is waited for, and does not wait: it is the second number of an arrow, and not in `waiting`.
Nobody absent? Then stand on any rank that waits and walk along the arrows, writing down where you have been. Where you
come for the second time, the circle begins: what you wrote down before that lies outside it.
""",
    "00-exchange": """
Somebody has to send before receiving. "Rank 0 sends first" is not enough: rank 0 may not be in the ring.
Either the ranks at even places send first and those at odd places receive first. Or everyone starts to send without
waiting (request = dist.isend(...)), receives, and then waits for the request.
""",
    "00-recover": """
Give the saved numbers to the new ranks: cluster.push({"saved": saved}). Then run a cell on them: cluster.px("...").
In that cell: if there is no process group (dist.is_initialized()), make one; then take shard from saved[rank].
A new rank has nothing that you have not given to it, imports included.
""",
}
