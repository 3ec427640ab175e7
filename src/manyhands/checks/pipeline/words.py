"""The words of unit 14's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "bubble": {
        "stages": (1, "the idle part of the whole step, with one stage on each rank"),
        "chunks": (1, "the same with several stages on each rank"),
    },
    "orders": {
        "gpipe": (1, "GPipe: all forwards, then all backwards, and a step that comes to its end as early as it can"),
        "1f1b": (1, "1F1B: each micro-batch once forward and once backward, and a step as short as that of GPipe"),
        "memory": (2, "1F1B: rank r holds no more than S - r micro-batches, also where there are fewer micro-batches than "
                      "stages"),
    },
    "finish": {
        "chain": (1, "the times of steps whose stages differ, with messages that cost nothing"),
        "messages": (1, "the same with messages that take their time"),
        "stuck": (1, "orders that can never be done are told from odd ones that can"),
    },
    "cut": {
        "blocks": (1, "each layer is in one stage, in order, and no stage is empty; too few layers are refused"),
        "dearest": (1, "the dearest stage is as cheap as it can be"),
    },
    "run": {
        "loss": (1, "the loss of the whole batch on the last stage, with micro-batches of different sizes, on 4, 3, 2 ranks and on 1"),
        "gradients": (2, "each stage has the gradients of one process, under GPipe, 1F1B and an odd order"),
        "messages": (1, "two messages for each micro-batch and border, with the bytes of one activation each"),
        "memory": (1, "with 1F1B rank r holds S - r micro-batches at most"),
    },
    "plan": {
        "memory": (1, "each plan fits into the memory of its devices"),
        "idle": (1, "its bubble is not larger than allowed"),
        "cheapest": (1, "of all plans that fit it costs the least"),
    },
    "update": {
        "norm": (1, "every stage returns the norm of the whole network's gradient, on 4, 3 and 2 ranks"),
        "weights": (1, "the weights of every stage are those of one process, both when the norm of the gradients is larger and when it is "
                       "smaller than max_norm"),
    },
}

_BACK = "rank {rank} of {stages}, {micro_batches} micro-batches: "

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "Expected parameter `tensor` of type": "What is to be sent is no tensor. If it is x.grad: what was received is a leaf, and has a gradient only if it was asked to, "
                                               "requires_grad_(), before the stage computed with it.",
        "must have the same dtype": "Everything is float64, also what is received (torch.empty without a dtype is float32).",
        "element 0 of tensors does not require grad": "Backward begins at a tensor that no gradient function has made: is it detached, or was it received?",
        "grad can be implicitly created": "y is no single number, unless this is the last stage: backward needs the gradient that comes in.",
        "Trying to backward through the graph a second time": "Backward was called twice for one micro-batch, or for another one's output.",
        "Pair is not connected": "A message to this rank itself, or to one that does not take part: dist.get_rank(group) says who this is inside the group.",
        "package's own answer": "This is what the exercise asks for, and it is closed here: write it yourself.",
        "is not part of group": "Ranks are counted inside the group: group_src and group_dst, where src and dst count in the world.",
    },
    # bubble
    "of busy": "This is the idle time divided by the busy time. Divide it by the whole step, busy and idle.",
    "one stage too many": "There are S - 1 forwards before the last rank can begin, not S.",
    "chunks ignored": "With more chunks the first micro-batch reaches the last rank sooner: each stage is so much smaller.",
    "chunks multiply stages": "The idle time is that of S - 1 small stages, not of all chunks of them: the ranks work on a first chunk while "
                              "the others wait for a second.",
    "no number": "What comes back is no number. Is there a `return`?",
    "per cent": "This is per cent. Asked for is a part, 0 to 1.",
    "busy part": "This is the busy part. Asked for is the idle one.",
    "bubble other": "Count in units of one forward and one backward of one stage: how long is a rank busy, how long does it wait?",
    # orders
    "no order": "This is no list of pairs like (\"F\", 0), each of them a letter and a whole number. (The text \"F0\" is no pair.)",
    "kinds": "An event is (\"F\", m) or (\"B\", m), with m from 0 to {last}.",
    "missing": _BACK + "{what} is not in the order.",
    "twice": _BACK + "{what} is in the order twice.",
    "backward first": _BACK + "the backward of micro-batch {m} comes before its forward.",
    "not gpipe": _BACK + "a backward comes before the last forward. GPipe does all forwards first.",
    "stuck": "With {stages} stages and {micro_batches} micro-batches the ranks wait for each other for ever: {why}.",
    "slow": "With {stages} stages and {micro_batches} micro-batches the step is longer than it need be. Is every rank's warm-up long enough, and no "
            "longer? Do all ranks take the micro-batches in one order?",
    "keeps": _BACK + "it holds {got} micro-batches at once. Its warm-up is too long: after S - 1 - rank forwards comes one forward and one "
             "backward in turn.",
    "keeps all": _BACK + "it holds all of them. One forward and one backward in turn, after a warm-up that is shorter on later ranks.",
    # finish
    "no times": "Asked for is a list for each rank, with a time for each event of its order.",
    "starts": "These are the times at which the events begin. Asked for is when they end.",
    "neighbour ignored": "An event that needs what another rank makes cannot begin before it is there.",
    "first stage's seconds": "Stages differ: the seconds of an event are those of its own rank.",
    "message ignored": "What a rank needs from another one arrives message_s after the event there has ended.",
    "times other": "The times are not right. Which two things must an event wait for?",
    "messages other": "The times are not right. What an event makes is on the other rank message_s after its end, activations and gradients alike; on its own rank "
                      "it is there at once, and the rank goes on at once.",
    "not refused": "These orders can never be done: ranks wait for each other, or a backward stands before its own forward. Raise ValueError.",
    "refused": "These orders can be done, though nobody would choose them: a ValueError is wrong here.",
    "endless": "It did not come to an end within {seconds} seconds. Where no rank can go on in a whole round, nobody ever will: raise "
               "ValueError.",
    # cut
    "no slices": "Asked for is a list of slices, one for each stage.",
    "how many": "{costs} in {stages} stages: there are {got} blocks.",
    "gap": "{costs} in {stages} stages: the blocks do not hold each layer once, in order.",
    "empty": "{costs} in {stages} stages: a stage is empty.",
    "accepted": "{layers} layers in {stages} stages: each stage needs one. Raise ValueError.",
    "even": "These are blocks with equal numbers of layers. Their costs count.",
    "greedy": "This fills one stage after the other up to the mean, and the last ones get what is left over. A larger first stage can make the dearest one "
              "cheaper.",
    "evened": "This evens out all stages: the sum of their squares, or the difference between dearest and cheapest, is least. Only the dearest one counts.",
    "dear": "The dearest stage is dearer than need be. There are few ways to cut: try all of them.",
    # run
    "loss nothing": "There is no loss on the last stage: run_stage returns it there.",
    "loss summed": "This is the sum of the micro-batches' losses. Each is a mean over its own rows: give it the weight rows of the micro-batch / rows of "
                   "the batch.",
    "loss mean": "This is the mean of the micro-batches' losses. They have different numbers of rows, so a mean over rows is another number.",
    "loss last": "This is the loss of the last micro-batch only.",
    "loss elsewhere": "Only the last stage has the loss; the others return None.",
    "loss graph": "The loss still holds the graph of its micro-batches. Asked for is a float: add up y.item().",
    "loss other": "This is not the loss of the whole batch.",
    "loss rounded": "This is the loss of the whole batch to only a few digits: something on the way is float32. Everything is float64, also what is received "
                    "(torch.empty without a dtype is float32).",
    "gradient none": "{name} of stage {stage} has no gradient. Does backward reach it?",
    "gradient summed": "These are the gradients of a sum of losses. Each micro-batch's loss counts with its share of the rows, "
                       "before backward.",
    "gradient mean": "These are the gradients of a mean of means: micro-batches have different numbers of rows, and each counts with its share of them.",
    "gradient last": "Stage {stage} has the gradients of one micro-batch only. They are added up over the step: no zero_grad in it.",
    "gradient not added": "The gradients that were there before are gone. They are added up, as backward does by itself: whoever calls run_stage clears "
                          "them.",
    "gradient other": "{name} of stage {stage} is not that of one process. Where the loss is wrong too, begin there. Else: is x.grad what is sent back? Has a buffer been used "
                      "again that backward still needed?",
    "gradient rounded": "{name} of stage {stage} is right to only a few digits: something on the way is float32. Everything is float64, also what is sent and "
                        "received (torch.empty without a dtype is float32).",
    "changed": "run_stage has changed {what}, which belongs to its caller, who uses it in the next step: work on a copy.",
    "messages many": "More messages than needed: one activation forward and one gradient back for each micro-batch and border.",
    "messages few": "Fewer messages than there must be: is everything sent that the neighbours need?",
    "messages bytes": "The number of messages is right, their bytes are not: an activation and its gradient have the same shape.",
    "messages half": "The number of messages is right, and they have half the bytes: they are float32, where everything is float64 (dtype=torch.float64).",
    "holds": "Stage {stage} still holds outputs or inputs of {got} earlier micro-batches when the next forward begins. What a backward has used is to be let go: "
             "take it out of where it is kept, and send y.detach(), not y itself.",
    "holds back": "Stage {stage} holds outputs or inputs of {got} micro-batches when a backward begins, its own among them. What an earlier backward has used is "
                  "to be let go before the next one begins.",
    "holds bytes": "Stage {stage} keeps tensors of {got}, where those of the micro-batches under way need {needed} bytes at most. Does a list or a variable keep something of each "
                   "micro-batch for longer, a clone of y, say? Or were tensors made for all micro-batches at the beginning?",
    "asked": "{what} belongs to the caller, and was asked for a gradient (requires_grad_): it keeps one after the step. The first stage needs no gradient of its "
             "input, and the last one none of a target. If the code is to be the same on all stages, use x.detach().requires_grad_().",
    "where": "in a run of {schedule} with {count} micro-batches on the ranks {ranks}, which count 0, 1, ... inside their group",
    "hangs": "If ranks wait for each other: dist.send ends only when the other side receives; in 1F1B the neighbour may be sending, too: dist.isend. Keep what it returns, "
             "and wait for each once: what nobody holds may never arrive, and over gloo a second wait() never ends.",
    # plan
    "no plan": "Asked for is (stages, micro-batches, \"gpipe\" or \"1f1b\"), out of those that the job has. For each job some plan fits.",
    "memory weights": "The weights do not fit with their gradients and Adam's numbers: {need:.3g} bytes are needed, a device has {has:.3g}.",
    "memory kept": "On one device 4 times the weights are {weights:.3g} bytes, and what is kept for backward {kept:.3g}: together {need:.3g}, and a device has "
                   "{has:.3g}. GPipe keeps all micro-batches, 1F1B min(M, S - rank) of them.",
    "too idle": "The bubble of this plan is {idle:.3f}; allowed is {allowed:.3f}.",
    "dearer": "A plan that fits costs {cheapest:.4g} stage-seconds, this one {price:.4g}: stages times the seconds of the step, with messages and "
              "start_s. Was it left out, though it fits? 1F1B keeps min(M, S - rank) micro-batches.",
    "unfit": "A plan that does not fit is never the cheapest.",
    "none fits": "It seems to have found no plan that fits. For each job some plan fits: is one of the two limits checked too strictly?",
    # plan: short ways of thinking, keys of `plan_cases.THOUGHTS`
    "weights thrice": "The weights were counted three times, it seems. Gradients and Adam's two numbers need three times as much again: with the weights four times.",
    "weights twice": "The weights were counted twice, it seems. Gradients and Adam's two numbers need three times as much again: with the weights four times.",
    "weights once": "The weights were counted once, it seems. Gradients and Adam's two numbers need three times as much again: with the weights four times.",
    "starts idle": "start_s was counted as idle time, it seems. It is work that a device does: count * (all forwards + all backwards), each with its start_s, is busy time.",
    "starts of forwards": "A backward takes start_s too: twice the share of the forward's seconds, plus start_s.",
    "starts doubled": "start_s was doubled for a backward, it seems. A backward takes twice the share of the forward's seconds, plus start_s once.",
    "no starts": "start_s was left out, it seems. Each forward and each backward of a micro-batch takes it in addition.",
    "messages free": "message_s was left out, it seems.",
    "backward as forward": "A backward was given the seconds of a forward, it seems. It takes twice the share, plus start_s.",
    "alive stages": "1F1B was thought to keep min(M, S) micro-batches on every stage, it seems. On rank r it keeps min(M, S - r).",
    "alive few": "1F1B was thought to keep S - rank micro-batches, it seems, also where there are fewer: it keeps min(M, S - rank).",
    "alive all": "1F1B was thought to keep all micro-batches, it seems. On rank r it keeps min(M, S - r).",
    "alive one": "Only one micro-batch was thought to be kept at a time, it seems. GPipe keeps all of them, 1F1B min(M, S - rank).",
    "kept whole": "Each micro-batch was thought to keep what the whole batch does, it seems. It keeps its share: kept_bytes / M.",
    "mean memory": "The memory was compared on the mean of the devices, it seems. Each of them has to fit.",
    "strictly less": "A plan that needs exactly memory_bytes fits, too.",
    # update
    "where update": "in the pipeline of the ranks {ranks}",
    "update hangs": "Ranks wait for each other. All stages of `group` must take part in a collective of `group`, also those between the ends. Only the first and the last one belong to `ends`.",
    "norm nothing": "The function returned nothing. It must return the norm as a float.",
    "norm no number": "The function did not return a number. It must return the norm as a float.",
    "norm own": "This is the norm of the gradients that this stage holds. The stages return different norms, so each of them clips by a different factor.",
    "norm own or largest": "This is the norm of the gradients that this stage holds. One process has the norm of all stages together.",
    "norm halved": "The gradient of the shared matrix counts with half of its size. It is the sum of both uses, not their mean.",
    "norm twice": "This is too large, because the shared matrix is one parameter of the network, and it is counted on both ends.",
    "norm too early": "This norm was computed while the two ends still had different gradients of the shared matrix. The square of a sum is not the sum of the squares.",
    "norm mean": "This is the root of the mean over the stages. Their gradients are parts of one long vector, so the squares are added.",
    "norm mean twice": "This is the root of the mean over the stages. Their gradients are parts of one long vector, so the squares are added. The shared matrix is counted on both ends, too.",
    "norm sum of norms": "This is the sum of the stages' norms. Add up their squares and take the root of the sum.",
    "norm largest": "This is the largest of the stages' norms. Their gradients are parts of one long vector, so the squares are added.",
    "norm square": "This is the square of the norm: take its root.",
    "norm clipped": "This is the norm after clipping. Asked for is the norm before, as `clip_grad_norm_` returns it.",
    "norm other": "This is not the norm of all gradients of the network.",
    "weights by own": "This stage has clipped by the norm of its own gradients. One process multiplies all gradients by the same factor.",
    "weights by own or largest": "This stage has clipped by the norm of the gradients that it holds, where one process has the norm of all stages together.",
    "weights by twice": "All gradients are clipped by one factor, and it is too small: the shared matrix is counted on both ends.",
    "weights by too early": "The factor comes from a norm that was computed before the gradients of the shared matrix were added.",
    "weights by mean": "All gradients are clipped by one factor. It comes from the mean over the stages, where one process has the sum of the squares.",
    "weights by largest": "All gradients are clipped by one factor. It comes from the stage with the largest norm, where one process has the norm of all stages together.",
    "weights by sum of norms": "All gradients are clipped by one factor. It comes from the sum of the stages' norms, where one process has the root of the sum of their squares.",
    "weights not clipped": "The gradients were not clipped.",
    "weights always": "The norm was below max_norm, and the gradients have been made larger. The factor is 1 at most.",
    "weights shared alone": "The shared matrix has been updated by the gradient of one end only, so its two copies drift apart.",
    "weights shared mean": "The shared matrix has been updated by the mean of the two ends. Its gradient is a sum, because the loss depends on both uses.",
    "weights shared twice": "The shared matrix has been updated by twice its gradient: is it added up twice?",
    "weights clipped early": "Each end has clipped its gradient of the shared matrix by its own factor before the two were added.",
    "weights other": "The weights are not those of one process, where the norm of the gradients is {where} than max_norm.",
}

HINTS = {  # {name: (where to look, which property the right code has)}
    "14-bubble": (
        "With one chunk a rank is busy for M units, and the whole step is as long as the last rank's work and the way there and back. With v chunks, in units of a small stage, it is "
        "busy for v M units; how long is the way to the last rank now?",
        "Count both in one unit, the time of a small stage. The way to the last rank does not depend on the number of "
        "chunks, whereas the work of a rank does. The bubble is a part of the *whole* step, so its denominator "
        "contains the wait, too.",
    ),
    "14-orders": (
        "The last rank needs no forward ahead of its first backward but its own. The rank before it must have done one more, so that the last one is never without work; and so on. What if there "
        "are not so many micro-batches?",
        "Play 1F1B on paper with 3 stages and 5 micro-batches: each rank does a forward or a backward as soon as it can, and backwards go first. Each order has three parts. How long is the first one on ranks 2, 1 "
        "and 0, and what remains for the last one? With 2 micro-batches, the first part of rank 0 cannot be longer than there are micro-batches.",
    ),
    "14-finish": (
        "Keep a dictionary from (kind, m, rank) to the time of its end. The next event of a rank can be done if the dictionary has what it needs: for a forward that of rank - 1, for a "
        "backward that of rank + 1 and its own forward.",
        "Two things must be over before an event can start: the event before it on the same rank, and the event on a "
        "neighbour whose result it needs, with the message between them. Either of the two may be the later one. Go "
        "through the ranks again and again. What do you know about the orders if no rank could go on in a whole "
        "round?",
    ),
    "14-cut": (
        "Where can the borders be? itertools.combinations(range(1, len(costs)), stages - 1) gives all of them. Which of the ways has the smallest largest sum?",
        "The borders decide everything: the beginning, the chosen places and the end, and each stage reaches from one "
        "border to the next. Compare the cuts by a single number, the cost of their dearest stage. Neither the "
        "differences between stages nor their mean matters.",
    ),
    "14-run": (
        "Forward: receive into torch.empty(shape, dtype=torch.float64), then requires_grad_(); send y.detach(). Keep x and y under m. Backward: receive a gradient of y's shape, y.backward(it), "
        "send x.grad. On the last stage y is the loss, times the rows of this micro-batch / all rows.",
        "Check three properties. What arrives must ask for its gradient itself, and what you send must not carry the "
        "graph along. A micro-batch must be forgotten as soon as its backward begins, its output as well as its "
        "input. And no event may wait for a send, although all of them must be over when the function returns. "
        "Compare your code with `forward` and `backward` in the tutorial, and note that micro-batches of different "
        "sizes do not have the same share in the loss.",
    ),
    "14-plan": (
        "start_s is work, and no idling. Three loops: stages, micro-batches, schedule. For each plan: seconds of forward and backward of a micro-batch on each stage, the orders, finish_times; the memory of each stage; "
        "leave out what does not fit; keep the cheapest.",
        "start_s belongs to every micro-batch, in forward and in backward. Memory has two parts. One holds everything "
        "that belongs to the weights, and it does not depend on the schedule. The other one is what the living micro- "
        "batches keep, and the schedule decides how many of them live on which rank. The bubble compares the work of "
        "all devices with the time for which they are paid.",
    ),
    "14-update": (
        "Nothing is wrong as long as nothing is clipped. What does `faulty_update` return on each rank, and what would one process return? Print the gradient of `shared` on both ends before and after each line, too.",
        "There are two faults. A number that belongs to the whole network is computed from what one rank holds, and two steps whose order matters are in the wrong order. When you repair the first one, remember that a copy of a parameter is not a second parameter.",
    ),
}
