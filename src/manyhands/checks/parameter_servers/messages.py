"""The messages of unit 08's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "place": {
        "cover": (1, "every row of every variable is in exactly one piece"),
        "limit": (
            2,
            "no server's link carries more than link_bytes in a step, with one to eight servers",
        ),
        "pieces": (1, "a server keeps at most one piece of a variable"),
    },
    "exchange": {
        "push": (
            2,
            (
                "each server takes from every worker the gradients of the server's pieces and the "
                "count"
            ),
        ),
        "pull": (1, "each worker has in its variables, in place, what the servers keep"),
    },
    "step": {
        "update": (
            2,
            (
                "after each of two steps, the servers keep what a single process computes from all "
                "rows, to 1e-9"
            ),
        ),
        "answer": (
            1,
            "every worker pulls variables that the gradients of all workers have changed",
        ),
    },
    "asynchronous": {
        "values": (
            2,
            (
                "after the replayed schedule, servers and workers have the variables that this "
                "order gives, to 1e-9"
            ),
        ),
        "staleness": (1, "the staleness of each push is right"),
    },
    "servers": {
        "number": (2, "the answer is the smallest number of servers that keeps the limit, or None"),
    },
    "strategy": {
        "places": (
            1,
            "the variable is stored on the server, and every gradient is scheduled on a worker",
        ),
        "weights": (
            2,
            (
                "after four steps, the variable has the values that a single process computes from "
                "all rows, to 1e-9"
            ),
        ),
    },
    "train": {
        "weights": (
            1,
            (
                "after three steps with real gradients, all workers have the weights that a single "
                "process computes, to 1e-9"
            ),
        ),
        "limit": (
            2,
            "the ledger has seen no more than the limit on any server's link, in either direction",
        ),
    },
}

FIT = (
    "What one rank sends does not fit what the other rank has room for. Send only the rows of the "
    "piece, and go through the pieces in the order of `pieces`."
)
ITSELF = (
    "A rank sends to itself. Since piece.server is the number of a server, its rank is "
    "servers[piece.server]."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "must match the size of tensor": FIT,
        "package's own answer": (
            "The course's own solution of this exercise is closed in this check, so write it "
            "yourself."
        ),
        "Shape and dtype must be the same": FIT + " A count has a dtype, too.",
        "should not be the same as the rank": ITSELF,
        "same as the rank": ITSELF,
        "TIME LIMIT": (
            "If no rank waits for another one, either a loop does not end or the machine is busy. "
            "In exercise 5, if no number of servers is enough, the answer is None."
        ),
        "list index out of range": (
            "Is the number of a server, a variable or a row too large somewhere?"
        ),
    },
    "hang": (
        "Some ranks wait for each other. Do both ends send and receive in the same order? Moreover,"
        " piece.server is the number of a server, and servers[piece.server] is its rank."
    ),
    "other": "The numbers are wrong, but they match no mistake that this check knows.",
    # place
    "no pieces": "place must return a list of pieces, Piece(variable, start, stop, server).",
    "stray server": (
        "A piece is given to a server that does not exist, because the servers are 0 to {last}. Was"
        " the room of a server counted too small? A server may keep link_bytes // workers, and a "
        "row has 8 * prod(shape[1:]) bytes."
    ),
    "stray": (
        "A piece lies outside the variables, their rows, or the servers, which are 0 to {last}."
    ),
    "rest lost": (
        "{lost} rows of variable {variable} are on no server, because rows // {servers} for each "
        "server leaves a remainder."
    ),
    "rows lost": (
        "{lost} rows of variable {variable} are on no server. Since the last row of a piece is stop"
        " - 1, the next piece begins at stop, and the last piece has the number of rows as its "
        "stop."
    ),
    "rows twice": (
        "Some rows of variable {variable} are in two pieces, so they would be changed twice, and it"
        " would be unclear which copy is right."
    ),
    (
        "limit",
        "dealt",
    ): (
        "The variables are assigned in turn, so the servers get the same number of variables but "
        "different numbers of bytes. {workers} workers pull from the server that got the largest "
        "variable."
    ),
    (
        "limit",
        "not cut",
    ): (
        "A server keeps more than it may, although every variable is whole. If a variable is larger"
        " than the room of a server, no order helps, and it must be cut into pieces of rows."
    ),
    (
        "limit",
        "equal parts",
    ): (
        "Every variable is cut into equal parts. If its rows leave a remainder, some servers get "
        "one row more, which adds up when they are the same servers for every variable. Give the "
        "next piece to the server that has room."
    ),
    (
        "limit",
        "workers",
    ): (
        "A server keeps {most} bytes here, which is no more than {link}. However, each of {workers}"
        " workers pulls them, and all of that goes over one link."
    ),
    (
        "limit",
        "numbers",
    ): "A server keeps {most} bytes here. A number has 8 bytes, so were they counted as one?",
    (
        "limit",
        "four bytes",
    ): (
        "A server keeps {most} bytes here, about twice the {room} that it may, which is "
        "link_bytes // workers. A number of float64 has 8 bytes, so were 4 counted?"
    ),
    (
        "limit",
        "a row too many",
    ): (
        "A server keeps {most} bytes here, although it may keep only {room}, which is "
        "link_bytes // workers. A row that does not fit as a whole is a row too many, so "
        "round down."
    ),
    ("limit", "not all kept"): "The limit is kept, but some rows are on no server.",
    (
        "limit",
        "other",
    ): (
        "A server keeps {most} bytes, and each of {workers} workers pulls them. Only link_bytes // "
        "workers fit."
    ),
    "many pieces": (
        "A server keeps several pieces of one variable. Since each is a separate message in every "
        "push and pull, join neighbouring rows."
    ),
    # exchange
    (
        "push",
        "not a pair",
    ): (
        "take must return a pair, which is a list of gradients (one for each of the server's "
        "pieces) and the count."
    ),
    ("push", "count"): "The gradients are right, but the count is wrong.",
    (
        "push",
        "another worker",
    ): "These are the gradients of a different worker. Receive with src=worker.",
    (
        "push",
        "first rows",
    ): (
        "These are the first rows of the variable, but the piece has the rows piece.start to "
        "piece.stop."
    ),
    (
        "push",
        "own variables",
    ): (
        "take has returned the values of the server's own pieces instead of their gradients. "
        "Receive into separate tensors, and leave the pieces unchanged."
    ),
    (
        "push",
        "divided",
    ): (
        "The gradients are already divided by the count. Push the sums instead, because the server "
        "divides once, by the rows of all workers."
    ),
    (
        "push",
        "into the pieces",
    ): (
        "What take returns shares the memory of the server's own pieces, which take must not "
        "change. Receive the gradients into separate tensors."
    ),
    (
        "push",
        "one buffer",
    ): (
        "take returns the same memory each time, so the push of the next worker overwrites it. "
        "Make new tensors in each call."
    ),
    (
        "pull",
        "added",
    ): "What the worker has received is added to its variables. It must replace them instead.",
    (
        "pull",
        "rounded",
    ): (
        "The numbers are right to about 7 digits. Something on the way is float32, although "
        "everything here is float64."
    ),
    ("pull", "unchanged"): "The worker's variables have not changed.",
    (
        "pull",
        "only in the list",
    ): (
        "The list has the right tensors, but the worker's own memory has not. Receive into a "
        "slice of the variable, instead of replacing the variable with a new tensor."
    ),
    (
        "pull",
        "from piece",
    ): (
        "The first piece that is wrong is number {number}. Are the pieces given and pulled in the "
        "same order, and into their own rows?"
    ),
    # step
    (
        "step",
        "unchanged",
    ): (
        "The step has not changed the pieces. Change each of them in place, as in w -= ..., because"
        " w = w - ... makes a new tensor and leaves the piece as it was."
    ),
    (
        "step",
        "only in the list",
    ): (
        "The list `mine` has the right tensors, but the server's memory has not. Change each "
        "piece in place, as in w -= ..."
    ),
    (
        "step",
        "not divided",
    ): (
        "The gradients are added up but not divided. Since they are sums over rows, divide by the "
        "rows of all workers."
    ),
    (
        "step",
        "by workers",
    ): (
        "The sum is divided by the {p} workers. Since the gradients are sums over rows, divide by "
        "the rows of all workers instead."
    ),
    (
        "step",
        "mean of means",
    ): (
        "This is the mean of the workers' means, in which a row of a worker with few rows "
        "counts more. Add up gradients and counts, and divide once."
    ),
    (
        "step",
        "sum of means",
    ): (
        "These are the workers' means, added up, so there are {p} means instead of one. Add up "
        "gradients and counts, and divide once."
    ),
    (
        "step",
        "decay on each",
    ): (
        "The decay counts {p} times, once for each worker. It belongs to no worker, so apply it "
        "once in each step."
    ),
    (
        "step",
        "decay by rows",
    ): (
        "The decay was divided by the rows together with the gradients, but it is not part of "
        "their mean."
    ),
    (
        "step",
        "decay after",
    ): (
        "The decay acts on weights that the gradient has changed already. It is one step, so both "
        "terms must use the w from before it."
    ),
    ("step", "no decay"): "The decay is missing from the update.",
    ("step", "uphill"): "The sign is wrong, since the update is w - rate * (...).",
    (
        "step",
        "decay without rate",
    ): "decay * w is not multiplied by the rate. The update is w - rate * (mean + decay * w).",
    (
        "step",
        "last only",
    ): (
        "Only the gradient of the last worker is in the update. Add up the gradients instead of "
        "overwriting them."
    ),
    (
        "step",
        "count of last",
    ): (
        "All gradients are in the update, but only the count of the last worker. Add up the "
        "counts, too."
    ),
    (
        "step",
        "only last",
    ): (
        "Only the last worker is in the update. Add up gradients and counts instead of overwriting "
        "them."
    ),
    (
        "step",
        "one by one",
    ): (
        "The pieces are changed once for each worker, as on an asynchronous server. A synchronous "
        "server waits for all pushes and then makes one step."
    ),
    (
        "step",
        "kept",
    ): (
        "The first step is right but the second is not, because the sums of the first are still in "
        "it. Begin each step with zeros."
    ),
    (
        "step",
        "not finite",
    ): "The numbers are not finite, as if a tensor had been used before it was filled.",
    (
        "step",
        "other",
    ): (
        "The servers' pieces are wrong in step {step}. The update needs the sum of all gradients "
        "over the rows of all workers, and decay * w, both times the rate."
    ),
    (
        "answer",
        "early",
    ): (
        "This worker got an answer before all workers had pushed, with the gradients of only "
        "{number} of {p} workers in it. No error appears, but the workers train different "
        "networks. First take from all, then give to all."
    ),
    (
        "answer",
        "asynchronous",
    ): (
        "This worker was answered when only {number} of {p} workers had pushed, after an "
        "update for each of them, as on an asynchronous server. First take from all, then give "
        "to all."
    ),
    (
        "answer",
        "unchanged",
    ): (
        "This worker got the variables from before the update, so the answer was too early. "
        "Change the pieces first, then give them to all."
    ),
    (
        "answer",
        "as kept",
    ): (
        "This worker has what the servers keep, so push and pull are right, and so is the answer. "
        "The update is wrong, as the criterion above shows."
    ),
    (
        "answer",
        "other",
    ): (
        "What this worker has pulled differs from what the servers should have. Do the servers give"
        " what they have changed, after they have changed it?"
    ),
    # asynchronous
    ("asynchronous", "unchanged"): "The variables are still what they were at the start.",
    (
        "asynchronous",
        "given before",
    ): "The worker is answered before the update, so it never sees its own step in what it pulls.",
    (
        "asynchronous",
        "lost updates",
    ): (
        "The server starts from the variables that this worker had pulled, so what other "
        "workers have changed since then is lost. Although the gradient is old, the "
        "server must change the newest variables."
    ),
    (
        "asynchronous",
        "all rows",
    ): (
        "The push is divided by the rows of all workers, but an asynchronous server knows "
        "only the worker that has just pushed."
    ),
    ("asynchronous", "not divided"): "The push is not divided by its count.",
    ("asynchronous", "no decay"): "The decay is missing from the update.",
    (
        "asynchronous",
        "decay shared",
    ): "The decay is divided by the number of workers, but here each push has the whole decay.",
    (
        "asynchronous",
        "shared out",
    ): (
        "Each step is divided by the number of workers, as in the tutorial, where a push "
        "was a part of the mean. Here, however, each push is a whole step with this "
        "worker's mean."
    ),
    (
        "asynchronous",
        "not finite",
    ): "The numbers are not finite, as if a tensor had been used before it was filled.",
    (
        "asynchronous",
        "other",
    ): (
        "The variables differ from what this order of pushes gives. For each push, take, update "
        "and give."
    ),
    ("stale", "no list"): "asynchronous must return a list of whole numbers, one for each push.",
    (
        "stale",
        "one more",
    ): (
        "Each number is one too large, because the worker has not missed its own update. Count "
        "before the update."
    ),
    (
        "stale",
        "versions",
    ): (
        "This is the number of the update. How many of these updates had the worker seen when it "
        "was last answered?"
    ),
    (
        "stale",
        "between",
    ): (
        "The worker's own last update is counted, but the server made it before the answer, so the "
        "worker has seen it."
    ),
    (
        "stale",
        "other",
    ): (
        "The schedule was {schedule}. The staleness of a push is the number of updates made since "
        "this worker was last answered."
    ),
    # servers
    (
        "servers",
        "own link",
    ): (
        "With {workers} workers, this many servers are not enough, and no number is, because each "
        "worker's own link carries all the bytes. Then the answer is None."
    ),
    (
        "servers",
        "beyond",
    ): (
        "With {workers} workers, no number of servers keeps {limit_s:.4g} s, so the answer is None."
        " From as many servers as workers on, each worker's own link takes the longest."
    ),
    (
        "servers",
        "one way",
    ): "This is only half of the exchange, in which gradients are pushed and variables are pulled.",
    (
        "servers",
        "rounded down",
    ): "This is one server too few. If a part of a server is needed, a whole one is needed.",
    (
        "servers",
        "just missed",
    ): (
        "This is one server too few, because the exchange then takes a little longer than the "
        "{limit_s:.6g} s that it may. Any time above the limit is too long."
    ),
    (
        "servers",
        "all but missed",
    ): (
        "With {workers} workers and as many servers, the exchange takes a little longer "
        "than the {limit_s:.6g} s that it may. Since more servers do not help, the answer "
        "is None."
    ),
    (
        "servers",
        "less than",
    ): (
        "This is one server too many. With one fewer, the time is exactly {limit_s:.4g} s, which "
        "is allowed because the rule is at most, not less than."
    ),
    (
        "servers",
        "all of them",
    ): (
        "With {workers} workers and as many servers, the limit is kept. Were {workers} servers "
        "tried? range(1, {workers}) ends before this number."
    ),
    ("servers", "no latency"): "The latency takes a part of the limit, too, and it counts twice.",
    (
        "servers",
        "other",
    ): (
        "With {workers} workers and a limit of {limit_s:.4g} s, the answer is different. Find the "
        "smallest number of servers that keeps the limit, or None."
    ),
    # TensorFlow's
    "no variable": "Return the tf.Variable that was trained.",
    "on the chief": (
        "The variable is stored at {where}. Make it inside strategy.scope(), so that it is stored "
        "on a server."
    ),
    "not scheduled": (
        "Of {wanted} gradients, {scheduled} were returned by scheduled calls. Call "
        "coordinator.schedule once for each pair (x, y), because what is called without it runs on "
        "the chief."
    ),
    (
        "strategy",
        "one by one",
    ): (
        "The variable is changed after each gradient, so the next worker already sees the "
        "change. Schedule all calls of a step, fetch all results, then change the variable "
        "once."
    ),
    ("strategy", "mean"): "The gradients are averaged over the calls, but they must be added up.",
    (
        "strategy",
        "last only",
    ): "Only the last gradient of each step is in the update. Add up all of them.",
    ("strategy", "unchanged"): "The variable still has its values from the start.",
    ("strategy", "uphill"): "The sign is wrong, since the update is w - rate * the sum.",
    (
        "strategy",
        "rate forgotten",
    ): "The sum of the gradients is subtracted without the rate, instead of rate * the sum.",
    (
        "strategy",
        "spoiled",
    ): (
        "The values are right, but the arrays of `steps` have been changed in place. Work on "
        "copies, because the arrays belong to the caller, who may still need them."
    ),
    (
        "strategy",
        "float32",
    ): (
        "The values are right to about 6 digits, so something on the way is rounded to float32. "
        "Arrays and variables are float64 here. (Only the rate may be float32, as Keras's "
        "optimisers keep it.)"
    ),
    (
        "strategy",
        "other",
    ): (
        "The values are wrong, but they match no mistake that this check knows. Do the scheduled "
        "functions only return gradients, are all gradients of a step computed from the same w, "
        "and is w changed once, after all of them have returned?"
    ),
    # train
    "place first": (
        "Nothing was trained, because `place` does not put every row on exactly one server. First "
        "correct exercise 1."
    ),
    "link": (
        "This server's link has carried more than it may, for {workers} workers, in one direction. "
        "Does `place` keep the limit? Is anything pushed or given twice?"
    ),
    (
        "train",
        "other",
    ): (
        "The weights are not what a single process computes. If the checks above pass, do push and "
        "pull work with gradients and weights of a real network?"
    ),
}

HINTS: Hints = {
    "08-place": (
        (
            "How many bytes may a server keep, if each worker pulls them all over its one link? "
            "Fill one server after another, row by row, and cut where a server is full."
        ),
        (
            "A server may keep room = link_bytes // workers. Go through the variables, and give the"
            " current server as many rows as still fit, which are free // row_bytes with row_bytes "
            "= 8 * prod(shape[1:]). If not even one row fits, go on with the next server."
        ),
    ),
    "08-exchange": (
        (
            "Both ends go through the pieces in the same order. A slice of rows is a view, so what "
            "is received into it is in the variable. The count is a message too, with a dtype."
        ),
        (
            "First, send the count to every server, as a tensor of one number. Then call "
            "dist.send(gradients[piece.variable][piece.start:piece.stop], "
            "dst=servers[piece.server]) for each piece in order. take calls dist.recv into a "
            "torch.empty_like(piece) for each piece in mine. pull calls dist.recv into "
            "variables[piece.variable][piece.start:piece.stop]."
        ),
    ),
    "08-step": (
        (
            "You need two loops over the workers, one that takes and one that gives. What is "
            "between them, and how often is it done?"
        ),
        (
            "Begin with sums = [torch.zeros_like(w) for w in mine]. For each worker, take, add to "
            "the sums, and add the count. Then compute w -= rate * (total / rows + decay * w) for "
            "each piece, and finally give to each worker."
        ),
    ),
    "08-asynchronous": (
        "Count the updates, and remember for each worker how many there were when it was answered.",
        (
            "In the loop for updates, worker in enumerate(schedule), `updates` is the number of "
            "updates made so far, so stale = updates - answered.get(worker, 0). Take, change "
            "`mine` in place, set answered[worker] = updates + 1, and give."
        ),
    ),
    "08-servers": (
        (
            "The time does not grow with more servers. From which number on does it no longer "
            "change? Up to that number, try one after another."
        ),
        (
            "Try servers = 1, 2, ..., workers in turn, and return the first for which "
            "parameter_server_s(..., servers) <= limit_s. After the loop, return None."
        ),
    ),
    "08-strategy": (
        (
            "The strategy is made from the resolver, the coordinator from the strategy, and the "
            "variable in the scope. Each step then has two parts, because you first schedule all "
            "calls and wait for them, and then change the variable."
        ),
        (
            "Write strategy = tf.distribute.ParameterServerStrategy(resolver) and coordinator = "
            "tf.distribute.coordinator.ClusterCoordinator(strategy), and then push = "
            "tf.function(lambda x, y: gradient(w, x, y)). In each step, call coordinator.fetch "
            "with the list of coordinator.schedule(push, args) for args in step, and then "
            "w.assign_sub(rate * tf.add_n(...))."
        ),
    ),
    "08-train": (
        (
            "This check runs what you have written above, so make the checks above pass first. "
            "`limit` depends on place, while `weights` depends on push, pull and synchronous_step."
        ),
        (
            "Two or three of the ranks are servers here. If only this check reports a broken limit,"
            " is anything pushed or given twice, or does a worker send more than 64 bytes in "
            "addition to the gradients? If the weights are wrong only here, do push and pull work "
            "for pieces that do not begin with row 0?"
        ),
    ),
}
