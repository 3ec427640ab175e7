"""The words of unit 08's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "place": {
        "cover": (1, "every row of every variable is in exactly one piece"),
        "limit": (2, "no server's link carries more than link_bytes in a step, with one to eight servers"),
        "pieces": (1, "a server keeps at most one piece of a variable"),
    },
    "exchange": {
        "push": (2, "each server takes in the gradients of its own pieces and the counts, from every worker"),
        "pull": (1, "each worker has what the servers keep in its variables, in place"),
    },
    "step": {
        "update": (2, "the servers' pieces are those of one process with all rows, after each of two steps, to 1e-9"),
        "answer": (1, "every worker pulls the variables that all workers' gradients have changed"),
    },
    "asynchronous": {
        "values": (2, "after the replayed schedule servers and workers have the variables that this order gives, to 1e-9"),
        "staleness": (1, "the staleness of each push"),
    },
    "servers": {
        "number": (2, "the fewest servers that keep the limit, or None"),
    },
    "strategy": {
        "places": (1, "the variable lives on the server, and every gradient is scheduled on a worker"),
        "weights": (2, "after four steps it has the values of one process with all rows, to 1e-9"),
    },
    "train": {
        "weights": (1, "after three steps with real gradients all workers have the weights of one process, to 1e-9"),
        "limit": (2, "and the ledger has seen no more than the limit on any server's link, in either direction"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "must match the size of tensor": "What one rank sends does not fit what the other makes room for: only the rows of the piece are sent, and pieces go in the order of `pieces`.",
        "package's own answer": "What the course has of this exercise is closed in its check: write it yourself.",
        "Shape and dtype must be the same": "What one rank sends does not fit what the other makes room for: only the rows of the piece are sent, and pieces go in the order of "
                                            "`pieces`. A count has a dtype, too.",
        "waits in recv, which has room for": "What one rank sends does not fit what the other makes room for: only the rows of the piece are sent, and pieces go in the order of "
                                             "`pieces`.",
        "should not be the same as the rank": "A rank sends to itself: piece.server is the number of a server, servers[piece.server] is its rank.",
        "same as the rank": "A rank sends to itself: piece.server is the number of a server, servers[piece.server] is its rank.",
        "TIME LIMIT": "If no rank waits for another one, a loop does not end: in exercise 5, where no number of servers is enough, the answer is None. Or the machine is busy.",
        "list index out of range": "Is a number of a server, a variable or a row too large somewhere?",
    },
    "hang": "Some ranks wait for each other. piece.server is the number of a server, and servers[piece.server] is its rank. And do both ends send and receive in the same order?",
    "other": "The numbers are wrong, and look like no mistake that is known here.",
    # place
    "no pieces": "place returns a list of pieces: Piece(variable, start, stop, server).",
    "stray server": "A piece is given to a server that does not exist: the servers are 0 to {last}. Was the room of a server counted too small? A server may keep link_bytes // workers, and a "
                    "row has 8 * prod(shape[1:]) bytes.",
    "stray": "A piece lies outside: of the variables, of their rows, or of the servers, which are 0 to {last}.",
    "rest lost": "{lost} rows of variable {variable} are on no server. rows // {servers} for each leaves a rest.",
    "rows lost": "{lost} rows of variable {variable} are on no server. The last row of a piece is stop - 1: the next piece begins at stop, and the last one has the number of rows "
                 "as its stop.",
    "rows twice": "Some rows of variable {variable} are on two servers: they would be changed twice, and nobody would know which is right.",
    ("limit", "dealt"): "The variables are dealt like cards, one after the other: as many for each server, and not as many bytes. {workers} workers pull them from the server that "
                        "got the largest one.",
    ("limit", "not cut"): "A variable is larger than what a server may keep. No order helps: it must be cut into pieces of rows.",
    ("limit", "equal parts"): "Every variable is cut into equal parts, and where its rows do not divide the first servers get one more: of every variable. Give the next piece to the "
                              "server that has room.",
    ("limit", "workers"): "A server keeps {most} bytes here, which is below {link}. But each of {workers} workers pulls them, and all of that goes over one link.",
    ("limit", "numbers"): "A server keeps {most} bytes here. A number has 8 bytes: were they counted as one?",
    ("limit", "four bytes"): "A server keeps {most} bytes here, about twice the {room} that it may, link_bytes // workers. A number of float64 has 8 bytes: were 4 counted?",
    ("limit", "a row too many"): "A server keeps {most} bytes here, and {room} is what it may, link_bytes // workers. A row that does not fit as a whole is a row too many: round down.",
    ("limit", "not all kept"): "The limit is kept, but not all rows are.",
    ("limit", "other"): "A server keeps {most} bytes, and each of {workers} workers pulls them. What fits is link_bytes // workers.",
    "many pieces": "A server keeps several pieces of one variable. Each is a message of its own in every push and pull: join neighbouring rows.",
    # exchange
    ("push", "not a pair"): "take returns a pair: a list of gradients, one for each of the server's pieces, and the count.",
    ("push", "count"): "The gradients are right, the count is not.",
    ("push", "another worker"): "These are the gradients of another worker: receive with src=worker.",
    ("push", "first rows"): "These are the first rows of the variable, and not those of the piece: rows piece.start to piece.stop.",
    ("push", "own variables"): "take has returned the server's own pieces: they are not to be changed, and the gradients need room of their own.",
    ("push", "divided"): "The gradients are divided by the count already. Push the sums: the server divides once, by the rows of all.",
    ("push", "into the pieces"): "take has received into the server's own pieces, and returned them: they are not to be changed, and the gradients need memory of their own.",
    ("push", "one buffer"): "take returns the same memory each time, so the push of the next worker overwrites it. Make new tensors in each call.",
    ("pull", "added"): "What has come is added to the worker's variables. It takes their place.",
    ("pull", "rounded"): "The numbers are right to about 7 digits: something on the way is float32, and everything is float64 here.",
    ("pull", "unchanged"): "The worker's variables are what they were.",
    ("pull", "only in the list"): "The list has the right tensors, but the worker's own memory has not: receive into a slice of the variable, do not put a new tensor in its place.",
    ("pull", "from piece"): "All is right up to piece {number}, and that one is wrong: are pieces given and pulled in the same order, and into their own rows?",
    # step
    ("step", "unchanged"): "The pieces are what they were before the step. Change each of them in place, as in w -= ...: w = w - ... makes a new tensor, and leaves the piece as it was.",
    ("step", "only in the list"): "The list `mine` has the right tensors, but the server's memory has not: change a piece in place, as in w -= ...",
    ("step", "not divided"): "The gradients are added up and not divided: they are sums over rows. Divide by the rows of all workers.",
    ("step", "by workers"): "The sum is divided by the {p} workers. The gradients are sums over rows: divide by the rows of all workers.",
    ("step", "mean of means"): "This is the mean of the workers' means: a row of a worker with few rows counts more. Add up gradients and counts, and divide once.",
    ("step", "sum of means"): "These are the workers' means, added up: {p} means where one is wanted. Add up gradients and counts, and divide once.",
    ("step", "decay on each"): "The decay counts {p} times, once for each worker. It belongs to no worker: once in each step.",
    ("step", "decay by rows"): "The decay was divided by the rows, with the gradients. It is no part of their mean.",
    ("step", "decay after"): "The decay acts on weights that the gradient has changed already. It is one step: both are of the w before it.",
    ("step", "no decay"): "There is no decay in the update.",
    ("step", "uphill"): "The sign is wrong: w - rate * (...).",
    ("step", "decay without rate"): "decay * w is not multiplied by the rate: w - rate * (mean + decay * w).",
    ("step", "last only"): "Only the gradient of the last worker is in the update: add up, do not overwrite.",
    ("step", "count of last"): "All gradients are in the update, but only the count of the last worker: add up the counts, too.",
    ("step", "only last"): "Only the last worker is in the update: add up gradients and counts, do not overwrite.",
    ("step", "one by one"): "The pieces are changed once for each worker. That is an asynchronous server: this one waits for all pushes, then makes one step.",
    ("step", "kept"): "The first step is right, the second is not: the sums of the first are still in it. Begin each step with zeros.",
    ("step", "not finite"): "The numbers are not finite: was a tensor used before it was filled?",
    ("step", "other"): "The servers' pieces are wrong in step {step}: gradients over rows of all, and decay * w, both times the rate.",
    ("answer", "early"): "This worker got an answer before all had pushed: the gradients of only {number} of {p} workers are in it. Nobody complains, and the workers train different "
                         "networks. First take from all, then give to all.",
    ("answer", "asynchronous"): "This worker was answered when only {number} of {p} workers had pushed, after an update for each of them: that is an asynchronous server. First take from all, then "
                                "give to all.",
    ("answer", "unchanged"): "This worker got the variables as they were before the update: an answer too early. Change the pieces first, then give them to all.",
    ("answer", "as kept"): "This worker has what the servers keep: push and pull are right, and so is the answer. The update is wrong, see above.",
    ("answer", "other"): "What this worker has pulled is not what the servers have. Do the servers give what they have changed, after they have changed it?",
    # asynchronous
    ("asynchronous", "unchanged"): "The pieces are what they were at the start.",
    ("asynchronous", "given before"): "The worker is answered before the update: it never sees its own step in what it pulls.",
    ("asynchronous", "lost updates"): "The server starts from the variables that this worker had pulled, and what others have changed since then is lost. The gradient is old, but the "
                                      "variables that are changed are the newest.",
    ("asynchronous", "all rows"): "The push is divided by the rows of all workers: an asynchronous server knows only the worker who has just pushed.",
    ("asynchronous", "not divided"): "The push is not divided by its count.",
    ("asynchronous", "no decay"): "There is no decay in the update.",
    ("asynchronous", "decay shared"): "The decay is divided by the number of workers. Here each push has the whole of it.",
    ("asynchronous", "shared out"): "Each step is divided by the number of workers, as in the tutorial, where a push was a part of the mean. Here each push is a whole step, of this worker's mean.",
    ("asynchronous", "not finite"): "The numbers are not finite: was a tensor used before it was filled?",
    ("asynchronous", "other"): "The variables are not those that this order of pushes gives: take, update, give, for each of them.",
    ("stale", "no list"): "asynchronous returns a list of whole numbers, one for each push.",
    ("stale", "one more"): "Each is one too many: the worker's own update is not among those that it has not seen. Count before the update.",
    ("stale", "versions"): "This is the number of the update. How many of them has the worker seen, when it was last answered?",
    ("stale", "between"): "The worker's own last update is counted: it was made before the answer, so the worker has seen it.",
    ("stale", "other"): "The schedule was {schedule}. Staleness: updates made since this worker was last answered.",
    # servers
    ("servers", "own link"): "{workers} workers: so many servers are not enough, and no number is: each worker's own link carries all the bytes. Then the answer is None.",
    ("servers", "beyond"): "{workers} workers: no number of servers keeps {limit_s:.4g} s. From as many servers as workers on, each worker's own link is what everyone waits for. "
                         "Then the answer is None.",
    ("servers", "one way"): "Half of the exchange: gradients go there, variables come back.",
    ("servers", "rounded down"): "One too few: a part of a server is a server.",
    ("servers", "just missed"): "One too few: with so many servers the exchange takes a little longer than the {limit_s:.6g} s that it may. Nothing above the limit is let pass.",
    ("servers", "all but missed"): "{workers} workers: with as many servers the exchange takes a little longer than the {limit_s:.6g} s that it may, and more do not help. Then the answer is None.",
    ("servers", "less than"): "One too many: {limit_s:.4g} s is the time with one server less, and a limit that is just reached is kept. At most, not less than.",
    ("servers", "all of them"): "{workers} workers: with as many servers as workers the limit is kept. Were {workers} servers tried? range(1, {workers}) ends before.",
    ("servers", "no latency"): "The latency takes a part of the limit, too: twice.",
    ("servers", "other"): "{workers} workers, {limit_s:.4g} s: another number of servers is the smallest that keeps the limit.",
    # TensorFlow's
    "no variable": "Return the tf.Variable that was trained.",
    "on the chief": "The variable lives at {where}: make it inside strategy.scope(), then it lives on a server.",
    "not scheduled": "Of {wanted} gradients {scheduled} came back from scheduled calls: one coordinator.schedule for each pair (x, y). What is called without it runs on the chief.",
    ("strategy", "one by one"): "The variable is changed after each gradient: this worker's answer is in what the next one sees. Schedule all calls of a step, fetch all, then change it once.",
    ("strategy", "mean"): "The gradients are averaged over the calls. They are to be added up.",
    ("strategy", "last only"): "Only the last gradient of each step is in the update: add them all up.",
    ("strategy", "unchanged"): "The variable is what it was at the start.",
    ("strategy", "uphill"): "The sign is wrong: w - rate * the sum.",
    ("strategy", "rate forgotten"): "The sum of the gradients is taken off as it is: rate * the sum.",
    ("strategy", "spoiled"): "The values are right, but the arrays of `steps` have been changed in place. They belong to the caller, who may still need them: work on copies.",
    ("strategy", "float32"): "The values are right to about 6 digits: something on the way is rounded to float32. Arrays and variables are float64 here. (The rate alone may be float32, "
                             "as Keras's optimisers keep it.)",
    ("strategy", "other"): "The values are others, and look like no mistake that is known here. Do the scheduled functions only return gradients, all of a step those of the same w, and is w "
                           "changed once, when all of them are back?",
    # train
    "place first": "`place` does not put every row on exactly one server, so nothing was trained. First make exercise 1 right.",
    "link": "This server's link has carried more than it may, for {workers} workers, in one direction. Does `place` keep the limit? Is anything pushed or given twice?",
    ("train", "other"): "The weights are not those of one process. If the checks above pass: do push and pull work with gradients and weights of a real network?",
}

HINTS = {
    "08-place": ("How many bytes may a server keep, if each worker pulls them all over its one link? Fill one server after the other, row by row, and cut where it is full.",
                 "room = link_bytes // workers is what a server may keep. Go through the variables; give the current server as many rows as still fit (free // row_bytes, row_bytes = 8 * "
                 "prod(shape[1:])); if not even one fits, go on with the next server."),
    "08-exchange": ("Both ends go through the pieces in the same order. A slice of rows is a view: what is received into it stands in the variable. And the count is a message too, with a dtype.",
                    "For each piece in order: dist.send(gradients[piece.variable][piece.start:piece.stop], dst=servers[piece.server]); the count goes ahead, as a tensor of one number, to "
                    "every server. take: torch.empty_like(piece) for each of mine, dist.recv into it. pull: dist.recv into variables[piece.variable][piece.start:piece.stop]."),
    "08-step": ("Two loops over the workers, one that takes and one that gives. What stands between them, and how often is it done?",
                "sums = [torch.zeros_like(w) for w in mine]. For each worker: take, add to the sums, add the count. Then w -= rate * (total / rows + decay * w) for each piece. Then give to each "
                "worker."),
    "08-asynchronous": ("Count the updates, and remember for each worker how many there were when it was answered.",
                        "for updates, worker in enumerate(schedule): `updates` is how many were made so far. stale = updates - answered.get(worker, 0); take, change `mine` in place, "
                        "answered[worker] = updates + 1, give."),
    "08-servers": ("The time does not grow with more servers. From which number on does it not change any more? Up to there, try one after the other.",
                   "Try servers = 1, 2, ..., workers in turn with parameter_server_s(..., servers) <= limit_s, and return the first that keeps it; None after the loop."),
    "08-strategy": ("The strategy comes from the resolver, the coordinator from the strategy, the variable from the scope. Then two things for each step: schedule all and wait for all; change the "
                    "variable.",
                    "strategy = tf.distribute.ParameterServerStrategy(resolver); coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy). push = tf.function(lambda x, y: "
                    "gradient(w, x, y)). For each step: coordinator.fetch of the list of coordinator.schedule(push, args) for args in step, then w.assign_sub(rate * tf.add_n(...))."),
    "08-train": ("This check runs what you have written above, so make the checks above pass first. `limit` is about place, `weights` about push, pull and synchronous_step.",
                 "Its worlds have two and three servers. If the limit is broken here only: is anything pushed or given twice, or more than 64 bytes beside the gradients? If the weights are wrong "
                 "here only: do push and pull work for pieces that do not begin with row 0?"),
}
