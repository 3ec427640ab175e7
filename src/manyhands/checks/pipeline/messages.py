"""The messages of unit 14's checks.

They say what each criterion asks for, the likely mistakes, and the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "bubble": {
        "stages": (1, "the idle part of the whole step, with one stage on each rank"),
        "chunks": (1, "the same with several stages on each rank"),
    },
    "orders": {
        "gpipe": (
            1,
            (
                "GPipe does all forwards and then all backwards, and the step ends as early as "
                "possible"
            ),
        ),
        "1f1b": (
            1,
            (
                "1F1B does each micro-batch once forward and once backward, and the step is as "
                "short as GPipe's"
            ),
        ),
        "memory": (
            2,
            (
                "with 1F1B, rank r holds at most S - r micro-batches, even with fewer micro-batches"
                " than stages"
            ),
        ),
    },
    "finish": {
        "chain": (1, "the times of steps whose stages differ, with messages that take no time"),
        "messages": (1, "the same with messages that take time"),
        "stuck": (1, "orders that can never be completed are distinguished from odd ones that can"),
    },
    "cut": {
        "blocks": (
            1,
            (
                "each layer is in one stage, in order, no stage is empty, and too few layers are "
                "refused"
            ),
        ),
        "dearest": (1, "the most expensive stage is as cheap as possible"),
    },
    "run": {
        "loss": (
            1,
            (
                "the last stage has the whole batch's loss, with micro-batches of different sizes, "
                "on 4, 3, 2 and 1 ranks"
            ),
        ),
        "gradients": (
            2,
            "the gradients are what a single process computes, under GPipe, 1F1B and an odd order",
        ),
        "messages": (
            1,
            "two messages for each micro-batch and border, each with the bytes of one activation",
        ),
        "memory": (1, "with 1F1B, rank r holds at most S - r micro-batches"),
    },
    "plan": {
        "memory": (1, "each plan fits into the memory of its devices"),
        "idle": (1, "its bubble is not larger than allowed"),
        "cheapest": (1, "of all plans that fit, it costs the least"),
    },
    "update": {
        "norm": (
            1,
            "every stage returns the norm of the whole network's gradient, on 4, 3 and 2 ranks",
        ),
        "weights": (
            1,
            (
                "the weights of every stage are what a single process computes, whether the norm of"
                " the gradients is larger or smaller than max_norm"
            ),
        ),
    },
}

_BACK = "On rank {rank} of {stages}, with {micro_batches} micro-batches, "

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "Expected parameter `tensor` of type": (
            "What you send is not a tensor. If it is x.grad, note that what was "
            "received is a leaf, which has a gradient only if you called "
            "requires_grad_() before the stage computed with it."
        ),
        "must have the same dtype": (
            "Everything must be float64, even what is received (torch.empty without a dtype is "
            "float32)."
        ),
        "element 0 of tensors does not require grad": (
            "Backward begins at a tensor that has no gradient function. Is "
            "it detached, or was it received?"
        ),
        "grad can be implicitly created": (
            "Unless this is the last stage, y is not a single number, so backward needs "
            "the gradient that is received."
        ),
        "Trying to backward through the graph a second time": (
            "Backward was called twice for one micro-batch, or on the output of a different one."
        ),
        "Pair is not connected": (
            "A message was addressed to this rank itself, or to a rank that does not take part. "
            "dist.get_rank(group) is this rank's number inside the group."
        ),
        "package's own answer": (
            "This is what the exercise asks for, and it is closed here, so write it yourself."
        ),
        "is not part of group": (
            "Ranks are counted inside the group. Use group_src and group_dst, because src and dst "
            "count in the world."
        ),
    },
    # bubble
    "of busy": (
        "This is the idle time divided by the busy time. Divide it by the whole step instead, busy "
        "and idle."
    ),
    "one stage too many": "There are S - 1 forwards before the last rank can begin, not S.",
    "chunks ignored": (
        "With more chunks, the first micro-batch reaches the last rank sooner, because each stage "
        "is smaller by that factor."
    ),
    "chunks multiply stages": (
        "The idle time is the time of S - 1 small stages, not of all chunks of them, because the "
        "ranks work on a first chunk while the others wait for a second."
    ),
    "no number": "What the function returns is not a number. Is there a `return`?",
    "per cent": "This is in per cent, but the function must return a fraction, 0 to 1.",
    "busy part": "This is the busy part, but the function must return the idle part.",
    "bubble other": (
        "Count in units of one forward and one backward of one stage. How long is a rank busy, and "
        "how long does it wait?"
    ),
    # orders
    "no order": (
        'This is not a list of pairs like ("F", 0), each of which is a letter and a whole number. '
        '(The text "F0" is not a pair.)'
    ),
    "kinds": 'An event must be ("F", m) or ("B", m), with m from 0 to {last}.',
    "missing": _BACK + "{what} is not in the order.",
    "twice": _BACK + "{what} is in the order twice.",
    "backward first": _BACK + "the backward of micro-batch {m} is before its forward.",
    "not gpipe": _BACK
    + "a backward is before the last forward, whereas GPipe does all forwards first.",
    "stuck": (
        "With {stages} stages and {micro_batches} micro-batches, the ranks wait for each other "
        "forever ({why})."
    ),
    "slow": (
        "With {stages} stages and {micro_batches} micro-batches, the step is longer than necessary."
        " Is every rank's warm-up long enough, and no longer? Do all ranks take the micro-batches "
        "in the same order?"
    ),
    "keeps": _BACK
    + "the order holds {got} micro-batches at the same time. Its warm-up is too long, because "
    "forwards and backwards must alternate after S - 1 - rank forwards.",
    "keeps all": _BACK
    + "the order holds all of them at the same time. Instead, let forwards and backwards "
    "alternate, after a warm-up that is shorter on later ranks.",
    # finish
    "no times": (
        "The function must return a list for each rank, with a time for each event of its order."
    ),
    "starts": (
        "These are the times at which the events begin, but the function must return when they end."
    ),
    "neighbour ignored": (
        "An event that needs the result of another rank cannot begin before that result has "
        "arrived."
    ),
    "first stage's seconds": "The stages differ, so each event takes the seconds of its own rank.",
    "message ignored": (
        "What a rank needs from another rank arrives message_s after the event there has ended."
    ),
    "times other": "The times are not right. For which two things must an event wait?",
    "messages other": (
        "The times are not right. The result of an event is on the other rank message_s after its "
        "end, activations and gradients alike. On its own rank, it is available immediately, and "
        "the rank goes on immediately."
    ),
    "not refused": (
        "These orders can never be completed, because ranks wait for each other or a backward is "
        "before its own forward. Raise ValueError."
    ),
    "refused": (
        "These orders can be completed, although they are odd, so a ValueError is wrong here."
    ),
    "endless": (
        "The function did not end within {seconds} seconds. If no rank can go on in a whole round, "
        "no rank ever will, so raise ValueError."
    ),
    # cut
    "no slices": "The function must return a list of slices, one for each stage.",
    "how many": "For {costs} in {stages} stages, there are {got} blocks.",
    "gap": "For {costs} in {stages} stages, the blocks do not hold each layer once, in order.",
    "empty": "For {costs} in {stages} stages, a stage is empty.",
    "accepted": (
        "{layers} layers cannot fill {stages} stages, because each stage needs a layer. Raise "
        "ValueError."
    ),
    "even": (
        "These are blocks with equal numbers of layers, but what counts is the cost of the layers."
    ),
    "greedy": (
        "This fills one stage after the other up to the mean, so the last ones get what is left "
        "over. A larger first stage can make the most expensive one cheaper."
    ),
    "evened": (
        "This evens out all stages, so that the sum of their squares, or the difference between the"
        " most and the least expensive one, is smallest. However, only the most expensive stage "
        "counts."
    ),
    "dear": (
        "The most expensive stage is more expensive than necessary. Since there are few cuts, try "
        "all of them."
    ),
    # run
    "loss nothing": "There is no loss on the last stage, where run_stage must return it.",
    "loss summed": (
        "This is the sum of the micro-batches' losses. Since each is a mean over its own rows, give"
        " it the weight rows of the micro-batch / rows of the batch."
    ),
    "loss mean": (
        "This is the mean of the micro-batches' losses. They have different numbers of rows, so the"
        " mean over all rows is different."
    ),
    "loss last": "This is the loss of the last micro-batch only.",
    "loss elsewhere": "Only the last stage has the loss, so the others must return None.",
    "loss graph": (
        "The loss still holds the graph of its micro-batches. Return a float instead, and add up "
        "y.item()."
    ),
    "loss other": "This is not the loss of the whole batch.",
    "loss rounded": (
        "This is the loss of the whole batch to only a few digits, probably because something on "
        "the way is float32. Everything must be float64, even what is received (torch.empty "
        "without a dtype is float32)."
    ),
    "gradient none": "{name} of stage {stage} has no gradient. Does backward reach it?",
    "gradient summed": (
        "These are the gradients of a sum of losses. Multiply each micro-batch's loss by its share "
        "of the rows before backward."
    ),
    "gradient mean": (
        "These are the gradients of a mean of means. Since micro-batches have different numbers of "
        "rows, each must count with its share of them."
    ),
    "gradient last": (
        "Stage {stage} has the gradients of one micro-batch only. They must be added up over the "
        "step, so there must be no zero_grad in it."
    ),
    "gradient not added": (
        "The gradients that existed before were lost. Add to them, as backward does by default, "
        "because the caller of run_stage clears them."
    ),
    "gradient other": (
        "{name} of stage {stage} differs from what a single process computes. If the loss is wrong "
        "too, begin there. Otherwise, is x.grad what you send back? Has a buffer been used again "
        "that backward still needed?"
    ),
    "gradient rounded": (
        "{name} of stage {stage} is right to only a few digits, probably because something on the "
        "way is float32. Everything must be float64, even what is sent and received (torch.empty "
        "without a dtype is float32)."
    ),
    "changed": (
        "run_stage has changed {what}, which belongs to its caller, who uses it in the next step. "
        "Work on a copy instead."
    ),
    "messages many": (
        "There were more messages than needed. Send one activation forward and one gradient back "
        "for each micro-batch and border."
    ),
    "messages few": (
        "There were fewer messages than necessary. Is everything sent that the neighbours need?"
    ),
    "messages bytes": (
        "The number of messages is right, but their bytes are not. An activation and its gradient "
        "have the same shape."
    ),
    "messages half": (
        "The number of messages is right, but they have half the bytes, as if they were float32. "
        "Everything must be float64 (dtype=torch.float64)."
    ),
    "holds": (
        "Stage {stage} still holds outputs or inputs of {got} earlier micro-batches when the next "
        "forward begins. Release what a backward has used. Remove it from where it is kept, and "
        "send y.detach(), not y itself."
    ),
    "holds back": (
        "Stage {stage} holds outputs or inputs of {got} micro-batches when a backward begins, its "
        "own among them. Release what an earlier backward has used before the next one begins."
    ),
    "holds bytes": (
        "Stage {stage} keeps tensors of {got}, although the micro-batches under way need at most "
        "{needed} bytes. Does a list or a variable keep something of each micro-batch for longer, "
        "such as a clone of y? Or were tensors made for all micro-batches at the beginning?"
    ),
    "asked": (
        "{what} belongs to the caller, but it requires a gradient (requires_grad_) after the step. "
        "The first stage needs no gradient of its input, and the last one needs none of a target. "
        "If the code must be the same on all stages, use x.detach().requires_grad_()."
    ),
    "where": (
        "in a run of {schedule} with {count} micro-batches on the ranks {ranks}, which are numbered"
        " 0, 1, ... inside their group"
    ),
    "hangs": (
        "Do ranks wait for each other? dist.send ends only when the other side receives, but in "
        "1F1B the neighbour may be sending, too, so use dist.isend. Keep the work handles, and "
        "wait for each once, because a message whose handle is lost may never arrive, and over "
        "gloo a second wait() never ends."
    ),
    # plan
    "no plan": (
        'The function must return (stages, micro-batches, "gpipe" or "1f1b"), out of those that the'
        " job has. For each job, some plan fits."
    ),
    "memory weights": (
        "The weights do not fit with their gradients and Adam's numbers, because {need:.3g} bytes "
        "are needed, whereas a device has {has:.3g}."
    ),
    "memory kept": (
        "On one device, 4 times the weights are {weights:.3g} bytes, and what is kept for backward "
        "is {kept:.3g}. Together, this is {need:.3g}, but a device has {has:.3g}. GPipe keeps all "
        "micro-batches, whereas 1F1B keeps min(M, S - rank) of them."
    ),
    "too idle": "The bubble of this plan is {idle:.3f}, but at most {allowed:.3f} is allowed.",
    "dearer": (
        "A plan that fits costs {cheapest:.4g} stage-seconds, whereas this one costs {price:.4g}. "
        "The cost is stages times the seconds of the step, with messages and start_s. Was the "
        "cheaper plan left out, although it fits? 1F1B keeps min(M, S - rank) micro-batches."
    ),
    "unfit": "A plan that does not fit is never the cheapest.",
    "none fits": (
        "The function seems to have found no plan that fits, although some plan fits for each job. "
        "Is one of the two limits checked too strictly?"
    ),
    # plan: incomplete calculations, keys of `plan_cases.THOUGHTS`
    "weights thrice": (
        "The weights seem to have been counted three times. Gradients and Adam's two numbers need "
        "three times as much in addition, which makes four times in all."
    ),
    "weights twice": (
        "The weights seem to have been counted twice. Gradients and Adam's two numbers need three "
        "times as much in addition, which makes four times in all."
    ),
    "weights once": (
        "The weights seem to have been counted once. Gradients and Adam's two numbers need three "
        "times as much in addition, which makes four times in all."
    ),
    "starts idle": (
        "start_s seems to have been counted as idle time. However, it is work that a device does, "
        "so count * (all forwards + all backwards), each with its start_s, is busy time."
    ),
    "starts of forwards": (
        "A backward takes start_s, too, in addition to twice the share of the forward's seconds."
    ),
    "starts doubled": (
        "start_s seems to have been doubled for a backward. A backward takes twice the share of the"
        " forward's seconds, plus start_s once."
    ),
    "no starts": (
        "start_s seems to have been left out, although each forward and each backward of a "
        "micro-batch takes it in addition."
    ),
    "messages free": "message_s seems to have been left out.",
    "backward as forward": (
        "A backward seems to have been given the seconds of a forward, although it takes twice the "
        "share, plus start_s."
    ),
    "alive stages": (
        "The function seems to assume that 1F1B keeps min(M, S) micro-batches on every stage. On "
        "rank r, it keeps min(M, S - r)."
    ),
    "alive few": (
        "The function seems to assume that 1F1B keeps S - rank micro-batches even if there are "
        "fewer. It keeps min(M, S - rank)."
    ),
    "alive all": (
        "The function seems to assume that 1F1B keeps all micro-batches. On rank r, it keeps min(M,"
        " S - r)."
    ),
    "alive one": (
        "The function seems to assume that only one micro-batch is kept at a time. GPipe keeps all "
        "of them, whereas 1F1B keeps min(M, S - rank)."
    ),
    "kept whole": (
        "The function seems to assume that each micro-batch keeps what the whole batch does. It "
        "keeps only its share, which is kept_bytes / M."
    ),
    "mean memory": (
        "The memory limit seems to have been checked for the mean of the devices, but each of them "
        "has this limit."
    ),
    "strictly less": "A plan that needs exactly memory_bytes fits, too.",
    # update
    "where update": "in the pipeline of the ranks {ranks}",
    "update hangs": (
        "Ranks wait for each other. All stages of `group` must take part in a collective of "
        "`group`, including the stages between the ends, whereas only the first and the last one "
        "belong to `ends`."
    ),
    "norm nothing": "The function returned nothing. It must return the norm as a float.",
    "norm no number": "The function did not return a number. It must return the norm as a float.",
    "norm own": (
        "This is the norm of the gradients that this stage holds. The stages return different "
        "norms, so each of them clips by a different factor."
    ),
    "norm own or largest": (
        "This is the norm of the gradients that this stage holds, whereas a single process has the "
        "norm of all stages together."
    ),
    "norm halved": (
        "The gradient of the shared matrix counts with half of its size. It must be the sum of both"
        " uses, not their mean."
    ),
    "norm twice": (
        "This is too large, because the shared matrix is one parameter of the network, but it is "
        "counted on both ends."
    ),
    "norm too early": (
        "This norm was computed while the two ends still had different gradients of the shared "
        "matrix. The square of a sum is not the sum of the squares."
    ),
    "norm mean": (
        "This is the root of the mean over the stages. Their gradients are parts of one long "
        "vector, so the squares must be added."
    ),
    "norm mean twice": (
        "This is the root of the mean over the stages. Their gradients are parts of one long "
        "vector, so the squares must be added. In addition, the shared matrix is counted on both "
        "ends."
    ),
    "norm sum of norms": (
        "This is the sum of the stages' norms. Add up their squares and take the root of the sum."
    ),
    "norm largest": (
        "This is the largest of the stages' norms. Their gradients are parts of one long vector, so"
        " the squares must be added."
    ),
    "norm square": "This is the square of the norm, so take its root.",
    "norm clipped": (
        "This is the norm after clipping. Return the norm before it instead, as `clip_grad_norm_` "
        "does."
    ),
    "norm other here": (
        "This is not the norm of all gradients in the pipeline of the ranks {ranks}, although the "
        "norm is right in the pipeline of all ranks. Ranks are counted inside the group, so use "
        "`dist.get_rank(group)`."
    ),
    "norm other": "This is not the norm of all gradients of the network.",
    "weights by own": (
        "This stage has clipped by the norm of its own gradients, whereas a single process "
        "multiplies all gradients by the same factor."
    ),
    "weights by own or largest": (
        "This stage has clipped by the norm of the gradients that it holds, whereas a single "
        "process has the norm of all stages together."
    ),
    "weights by twice": (
        "All gradients are clipped by one factor, but it is too small, because the shared matrix is"
        " counted on both ends."
    ),
    "weights by too early": (
        "The factor is based on a norm that was computed before the gradients of the shared matrix "
        "were added."
    ),
    "weights by mean": (
        "All gradients are clipped by one factor. It is computed from the mean over the stages, "
        "whereas a single process has the sum of the squares."
    ),
    "weights by largest": (
        "All gradients are clipped by one factor. It is computed from the stage with the largest "
        "norm, whereas a single process has the norm of all stages together."
    ),
    "weights by sum of norms": (
        "All gradients are clipped by one factor. It is computed from the sum of the stages' "
        "norms, whereas a single process has the root of the sum of their squares."
    ),
    "weights not clipped": "The gradients were not clipped.",
    "weights always": (
        "The norm was below max_norm, but the gradients have been made larger. The factor is at "
        "most 1."
    ),
    "weights shared alone": (
        "The shared matrix has been updated by the gradient of one end only, so its two copies "
        "drift apart."
    ),
    "weights shared mean": (
        "The shared matrix has been updated by the mean of the two ends. Its gradient is a sum, "
        "because the loss depends on both uses."
    ),
    "weights shared twice": (
        "The shared matrix has been updated by twice its gradient. Is it added up twice?"
    ),
    "weights clipped early": (
        "Each end has clipped its gradient of the shared matrix by its own factor before the two "
        "were added."
    ),
    "weights follow": (
        "The weights follow from the norm that the function returned, but that norm is wrong. "
        "Repair the criterion above first."
    ),
    "weights other here": (
        "In the pipeline of the ranks {ranks}, the weights differ from what a single process "
        "computes, although they are right in the pipeline of all ranks. Ranks are counted inside "
        "the group, so use `dist.get_rank(group)`."
    ),
    "weights other": (
        "The weights differ from what a single process computes if the norm of the gradients is "
        "{where} than max_norm."
    ),
}

HINTS: Hints = {  # {name: (where to look, which property the right code has)}
    "14-bubble": (
        (
            "With one chunk, a rank is busy for M units, and the whole step is as long as the last "
            "rank's work and the way there and back. With v chunks, in units of a small stage, a "
            "rank is busy for v M units. How long is the way to the last rank now?"
        ),
        (
            "Count both in one unit, the time of a small stage. The way to the last rank does not "
            "depend on the number of chunks, whereas the work of a rank does. The bubble is a part "
            "of the *whole* step, so its denominator contains the wait, too."
        ),
    ),
    "14-orders": (
        (
            "Before its first backward pass, the last rank needs only its own forward pass. The "
            "rank before it must have run one more, so that the last one is never without work, "
            "and so on. What happens if there are fewer micro-batches than that?"
        ),
        (
            "Play 1F1B on paper with 3 stages and 5 micro-batches. Each rank runs a forward or a "
            "backward pass as soon as it can, and backward passes go first. Each order has three "
            "parts. How long is the first one on ranks 2, 1 and 0, and what remains for the last "
            "one? With 2 micro-batches, the first part of rank 0 cannot be longer than there are "
            "micro-batches."
        ),
    ),
    "14-finish": (
        (
            "Keep a dictionary from (kind, m, rank) to the time at which the event ends. A rank can"
            " process its next event if the dictionary has what it needs. A forward pass needs the "
            "entry of rank - 1, and a backward pass needs the entry of rank + 1 and its own "
            "forward pass."
        ),
        (
            "Two things must be over before an event can start. One is the event before it on the "
            "same rank, and the other is the event on a neighbour whose result it needs, with the "
            "message between them. Either of the two may be later. Go through the ranks "
            "repeatedly. What do you know about the orders if no rank could go on in a whole "
            "round?"
        ),
    ),
    "14-cut": (
        (
            "Where can the borders be? itertools.combinations(range(1, len(costs)), stages - 1) "
            "gives all of them. For which of these cuts is the largest sum smallest?"
        ),
        (
            "The borders, which are the beginning, the chosen places and the end, decide "
            "everything, because each stage reaches from one border to the next. Compare the cuts "
            "by a single number, the cost of their most expensive stage. Neither the differences "
            "between stages nor their mean matters."
        ),
    ),
    "14-run": (
        (
            "For a forward pass, receive into torch.empty(shape, dtype=torch.float64), call "
            "requires_grad_() on it, and send y.detach(). Keep x and y under m. For a backward "
            "pass, receive a gradient of y's shape, call y.backward(it), and send x.grad. On the "
            "last stage, y is the loss times the rows of this micro-batch / all rows."
        ),
        (
            "Check three properties. What arrives must require a gradient itself, and what you send"
            " must not carry the graph along. A micro-batch must be forgotten as soon as its "
            "backward pass begins, its output as well as its input. Moreover, no event may wait "
            "for a send, although all sends must be over when the function returns. Compare your "
            "code with `forward` and `backward` in the tutorial, and note that micro-batches of "
            "different sizes do not have the same share in the loss."
        ),
    ),
    "14-plan": (
        (
            "start_s is work and not idle time. Write three loops, over stages, micro-batches and "
            "schedules. For each plan, compute the seconds that a micro-batch's forward and "
            "backward passes take on each stage, the orders, finish_times, and the memory of each "
            "stage. Leave out what does not fit, and keep the cheapest."
        ),
        (
            "start_s belongs to every micro-batch, in forward and in backward. Memory has two "
            "parts. One holds everything that belongs to the weights, and it does not depend on "
            "the schedule. The other one is what the micro-batches under way keep, and the "
            "schedule decides how many of them each rank holds. The bubble compares the work of "
            "all devices with the time for which they are paid."
        ),
    ),
    "14-update": (
        (
            "Nothing is wrong as long as nothing is clipped. What does `faulty_update` return on "
            "each rank, and what would a single process return? Print the gradient of `shared` on "
            "both ends before and after each line, too."
        ),
        (
            "There are two faults. A number that belongs to the whole network is computed from what"
            " one rank holds, and two steps whose order matters are in the wrong order. When you "
            "repair the first one, remember that a copy of a parameter is not a second parameter."
        ),
    ),
}
