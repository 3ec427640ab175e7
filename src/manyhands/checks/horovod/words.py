"""The words of unit 10's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "diagnose": {
        "named": (2, "the missing edit of seven trainings is named from their numbers"),
    },
    "resume": {
        "weights": (1, "all ranks have the parameters and the buffers of rank 0's checkpoint, to 1e-9"),
        "optimiser": (1, "all ranks have its momenta and its learning rate"),
        "step": (1, "all ranks go on at its step"),
    },
    "fit": {
        "four": (2, "on four ranks with uneven shards: the weights of one process, to 1e-9"),
        "three": (1, "on three ranks, likewise"),
    },
    "epoch": {
        "once": (1, "the rows of an epoch's whole steps come once; the order depends on the epoch, and on nothing else"),
        "steps": (1, "every rank has as many steps of rows_per_rank rows as there are whole ones"),
        "rate": (1, "the rate is scaled with the rows of a step"),
    },
    "finish": {
        "file": (1, "rank 0 alone writes, model and mean loss"),
        "loss": (1, "every rank returns the mean loss of all ranks"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "raised": "diagnose raised {error}; it was given {case}.",
    "known": {
        "TIME LIMIT": "If no rank waits for another one, the machine may be busy, not your answer wrong: run this check again.",
        "No such file or directory": "The file is on rank 0's disk only: rank 0 reads it, the others get what was read by broadcasts.",
        "Mismatched": "The ranks hand in tensors of different shapes or types under one name.",
        "Duplicate tensor name": "Two tensors are under way with one name: give each its own, or none.",
        "element 0 of tensors does not require grad": "Sum up what knows its gradient: an all-reduce of the loss in front of backward is not needed.",
    },
    "behind an if": "Every rank must make the same calls of Horovod. Is one of them behind `if hvd.rank() == 0`, or does a rank make one more?",
    # diagnose
    "no edit": "The answer is one of {edits}.",
    ("diagnosis", "nothing"): "Ranks that are equal to 1e-9 at the end, each row once, one writer: nothing is missing.",
    ("diagnosis", "start"): "The ranks are apart before the first step: nobody broadcast the weights. What is seen later follows from that.",
    ("diagnosis", "gradients"): "They start together and end apart: each has taken steps of its own.",
    ("diagnosis", "rows"): "Rows are counted more often than they are there: several ranks have computed the same rows.",
    ("diagnosis", "files"): "More than one rank wrote the checkpoint; all else is right.",
    ("diagnosis", "rounding"): "The distances are rounding: below 1e-9, though not zero. Nothing is missing.",
    ("diagnosis", "nobody"): "Nobody wrote the checkpoint; all else is right. Rank 0 alone writes: exactly one writer.",
    # resume
    ("resume", "own"): "This rank still has its own weights. Only rank 0 has read the checkpoint: broadcast_parameters.",
    ("resume", "stepped"): "The weights are a little too small: weight decay has acted. On a rank without a state, broadcast_optimizer_state takes a step with gradients of "
                           "zero. Broadcast the parameters after it.",
    ("resume", "buffers"): "The parameters are right, the buffers are not: batch norm's running mean is in model.state_dict(), and not among the named parameters.",
    ("resume", "not finite"): "The weights are not finite.",
    ("resume", "other"): "These are neither the checkpoint's weights nor this rank's own.",
    ("resume", "no momentum"): "The optimiser has no momentum: its state was not broadcast, or was lost. The next step will differ from rank 0's.",
    ("resume", "other momentum"): "The momentum is not the checkpoint's: broadcast_optimizer_state, from rank 0.",
    ("resume", "rate"): "The learning rate is this rank's own, and not the checkpoint's. broadcast_optimizer_state brings it too.",
    ("resume", "settings"): "Momentum or weight decay is this rank's own, and not the checkpoint's: all settings of the optimiser's groups go on, not only the learning rate. broadcast_optimizer_state "
                            "brings them.",
    ("resume", "step"): "The step is not rank 0's: the ranks would end at different times, and wait for each other. hvd.broadcast_object.",
    ("resume", "no whole number"): "resume returns the step as a whole number, for `range(step, ...)`: hvd.broadcast_object gives back what was put in; a tensor has .item().",
    # fit
    ("fit", "own"): "These are the weights of training alone on this rank's own rows: no gradient has been exchanged.",
    ("fit", "mean of means"): "This is the average of the ranks' means. Shards of {sizes} rows: a row of a small one counts more. Add up losses, divide by all {n} rows, and add up the "
                              "gradients (op=hvd.Sum).",
    ("fit", "sum of means"): "The gradients of the ranks' means were added up: steps about {p} times too long. Divide by all {n} rows instead of by the rank's own.",
    ("fit", "not divided"): "The losses are added up and not divided: steps {n} times too long. The mean of all {n} rows is wanted.",
    ("fit", "divided again"): "The steps are {p} times too short: divided by all {n} rows, and averaged over {p} ranks too. Parts of a mean are added up: op=hvd.Sum.",
    ("fit", "mean of sums"): "The sums of losses were averaged over the {p} ranks: steps {n} / {p} times too long. Divide by all {n} rows.",
    ("fit", "times p"): "The steps are {p} times too long. Was the rate multiplied by hvd.size()? Here the batch is all {n} rows already. Or was the loss all-reduced before "
                        "backward? Backward of hvd.allreduce adds up the gradients of all ranks once more.",
    ("fit", "accumulated"): "Gradients of earlier steps are still in `grad`: backward adds to it. Empty it in every step.",
    ("fit", "accumulated and summed"): "Gradients of earlier steps are still in `grad`, and were summed over the ranks again. Empty it in every step.",
    ("fit", "nothing"): "The weights have not moved: is it the given model that is trained?",
    ("fit", "not finite"): "The weights are not finite.",
    ("fit", "rounded"): "The weights are right to a few digits only. Something on the way is rounded, to float16 or float32: compression= of DistributedOptimizer, or a cast?",
    ("fit", "other"): "These are not the weights of one process. Shards of {sizes} rows: sum of losses / {n} on each rank, and the sum of the gradients in every step.",
    # epoch
    ("epoch", "no such row"): "There are rows that are not among the {n}.",
    ("epoch", "all rows"): "Each of {p} ranks goes through all the rows: an epoch is {p} epochs. Give each rank its part of the order.",
    ("epoch", "rows twice"): "Some rows come twice in an epoch, on different ranks. Do all {p} ranks draw the same order, and take different parts of it?",
    ("epoch", "not whole"): "Another number of rows than {whole} is taken: of {n}, that many belong into whole steps of {p} ranks.",
    ("epoch", "same order"): "The order is the same in every epoch. Seed it with the epoch.",
    ("epoch", "not by the epoch"): "The same epoch came in two orders: it depends on more than the epoch. After a restart, rows would come twice.",
    ("epoch", "reseeded"): "Afterwards torch's own generator stands somewhere else: dropout and all else that draws from it now depends on this function. Take a generator of your own: "
                           "torch.randperm(n, generator=torch.Generator().manual_seed(epoch)).",
    ("epoch", "other order"): "The rows do not come in the order torch.randperm(n, generator=torch.Generator().manual_seed(epoch)).",
    ("epoch", "different steps"): "The ranks have different numbers of steps: who has one more waits for ever. n = {n}, {p} ranks.",
    ("epoch", "sizes"): "A step must have {rows} rows on every rank; what is left over of {n} is left out.",
    ("epoch", "an empty step"): "{n} rows are too few for a step of {rows} rows on each of {p} ranks: no step at all is right. Here there is one of no rows: split of an empty tensor "
                                "gives one empty part.",
    ("epoch", "too many steps"): "There are too many steps: a step takes {rows} rows on each of {p} ranks, and there are {n}.",
    ("epoch", "too few steps"): "There are too few steps: {n} // ({rows} * {p}) whole ones are there. Where nothing is left over, the last one counts too.",
    ("epoch", "not scaled"): "The rate is that of one process, but a step has {p} times as many rows: multiply by hvd.size().",
    ("epoch", "by the root"): "The rate is multiplied by the square root of {p}; here the linear rule is wanted.",
    ("epoch", "rate"): "The rate is not base_rate * {p}.",
    # finish
    ("finish", "nobody"): "Nobody has written the file.",
    ("finish", "all write"): "All ranks have written the file, into each other if it is one file: rank 0 alone writes.",
    ("finish", "local"): "Several ranks have written the file: hvd.local_rank() is 0 once on every node. hvd.rank() is 0 once.",
    ("finish", "not rank 0"): "Another rank than 0 has written the file.",
    ("finish", "other weights"): "The weights in the file are not those of the model that finish was given. It saves the model, and does not change it.",
    ("finish", "content"): 'The file must hold {"model": model.state_dict(), "loss": the mean}.',
    ("finish", "own in the file"): "The file has rank 0's own loss, not the mean over the ranks.",
    ("finish", "own"): "This is the rank's own loss, not the mean over the ranks.",
    ("finish", "rank 0's"): "This is rank 0's own loss: it was broadcast, not averaged.",
    ("finish", "sum"): "This is the sum over the ranks: hvd.allreduce averages unless it is told op=hvd.Sum.",
    ("finish", "loss"): "This is not the mean of the ranks' losses.",
    ("finish", "tensor"): "finish returns a tensor; a float is asked for: .item().",
    ("finish", "no number"): "finish returns the mean loss, on every rank: one number.",
}

HINTS = {
    "10-diagnose": (
        "Go through the edits in the order in which they act: the start, then the gradients. Who starts apart ends apart. The distances say nothing of rows and files. "
        "What is the smallest distance that counts, and which numbers of writers are wrong?",
        "if symptoms['apart_at_start'] > 1e-9: return 'start'; then likewise apart_at_end and 'gradients'; rows_counted != rows_there is 'rows'; writers != 1 is 'files'; "
        "else 'nothing'."),
    "10-resume": (
        "Four things must be rank 0's on all ranks: parameters, buffers, the optimiser's state, the step. Which broadcast brings which? And one of the broadcasts takes a step with weight "
        "decay on a rank that has no state yet: what must be sent after it?",
        "step = broken_resume(...) reads the file on rank 0. Then hvd.broadcast_optimizer_state(optimiser, root_rank=0), after it hvd.broadcast_parameters(model.state_dict(), "
        "root_rank=0), and hvd.broadcast_object(step, root_rank=0, name='step'). All of them outside of any if."),
    "10-fit": (
        "Two edits are missing at once. Who exchanges gradients? And each rank's mean is over its own rows: which number must every rank divide by, so that the parts add up to the mean of all?",
        "count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum) is the number of all rows. Loss: cross_entropy(model(x), y, reduction='sum') / count. Wrap the optimiser: "
        "hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), op=hvd.Sum)."),
    "10-epoch": (
        "All ranks draw one order; each takes another part of it. How many rows do all ranks take together in one step, and how many such steps fit into n?",
        "steps = n // (rows_per_rank * hvd.size()). Draw the order as the text says; order[hvd.rank()::hvd.size()] is one part of it, cut to steps * rows_per_rank rows. Rate: "
        "base_rate * hvd.size()."),
    "10-finish": (
        "One of the two lines is a call in which all ranks take part, the other is not. Only the latter may stand behind an if. And what does allreduce return: a float?",
        "Average first, on all ranks: hvd.allreduce(torch.tensor(loss, dtype=torch.float64), name='loss').item(). Then `if hvd.rank() == 0:` save. Then return, on all ranks."),
}
