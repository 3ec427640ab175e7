"""The words of unit 10's checks: what each criterion says, the likely mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "diagnose": {
        "named": (2, "the missing edit of seven training runs is named from their numbers"),
    },
    "resume": {
        "weights": (
            1,
            "all ranks have the parameters and the buffers of rank 0's checkpoint, to 1e-9",
        ),
        "optimiser": (1, "all ranks have its momenta and its learning rate"),
        "step": (1, "all ranks continue at its step"),
    },
    "fit": {
        "four": (
            2,
            (
                "four ranks with uneven shards end with the weights that a single process computes,"
                " to 1e-9"
            ),
        ),
        "three": (1, "the same holds for three ranks"),
    },
    "epoch": {
        "once": (
            1,
            (
                "the rows of an epoch's whole steps appear once, in an order that depends only on "
                "the epoch"
            ),
        ),
        "steps": (
            1,
            "every rank has as many whole steps of rows_per_rank rows as fit into the epoch",
        ),
        "rate": (1, "the learning rate is scaled with the rows of a step"),
    },
    "finish": {
        "file": (1, "only rank 0 writes, and its file has model and mean loss"),
        "loss": (1, "every rank returns the mean loss of all ranks"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "raised": "diagnose raised {error} when it was given {case}.",
    "known": {
        "TIME LIMIT": (
            "If no rank waits for another one, perhaps only the machine is busy, so run this check "
            "again."
        ),
        "No such file or directory": (
            "The file is on rank 0's disk only, so rank 0 reads it, and the others get its "
            "content by broadcasts."
        ),
        "Mismatched": "The ranks hand in tensors of different shapes or types under one name.",
        "Duplicate tensor name": (
            "Two tensors with the same name are under way. Give each a different name, or none."
        ),
        "element 0 of tensors does not require grad": (
            "Compute the loss from tensors that know their gradient. An "
            "all-reduce of the loss before backward is not needed."
        ),
    },
    "behind an if": (
        "Every rank must make the same calls of Horovod. Is one of them behind `if hvd.rank() == "
        "0`, or does a rank make one more?"
    ),
    # diagnose
    "no edit": "The answer must be one of {edits}.",
    (
        "diagnosis",
        "nothing",
    ): (
        "Nothing is missing, because the ranks are equal to 1e-9 at the end, each row counts "
        "once, and there is one writer."
    ),
    (
        "diagnosis",
        "start",
    ): (
        "The ranks are apart before the first step, because the weights were not broadcast. Later "
        "symptoms follow from that."
    ),
    (
        "diagnosis",
        "gradients",
    ): (
        "The ranks start together but end apart, because each rank has taken steps with its "
        "own gradients."
    ),
    (
        "diagnosis",
        "rows",
    ): (
        "Rows are counted more often than they exist, because several ranks have computed the same "
        "rows."
    ),
    (
        "diagnosis",
        "files",
    ): "More than one rank wrote the checkpoint, while everything else is right.",
    (
        "diagnosis",
        "rounding",
    ): (
        "The distances are due to rounding, since they are below 1e-9, although not zero, so "
        "nothing is missing."
    ),
    (
        "diagnosis",
        "nobody",
    ): (
        "No rank wrote the checkpoint, while everything else is right. Exactly one rank must "
        "write it, which is rank 0."
    ),
    # resume
    (
        "resume",
        "own",
    ): (
        "This rank still has its own weights, because only rank 0 has read the checkpoint, so use "
        "broadcast_parameters."
    ),
    (
        "resume",
        "stepped",
    ): (
        "The weights are a little too small, because weight decay has acted. On a rank without a "
        "state, broadcast_optimizer_state takes a step with gradients of zero, so broadcast the "
        "parameters after it."
    ),
    (
        "resume",
        "buffers",
    ): (
        "The parameters are right, but the buffers are not. Batch norm's running mean is in "
        "model.state_dict(), but not among the named parameters."
    ),
    ("resume", "not finite"): "The weights are not finite on this rank.",
    ("resume", "other"): "These are neither the checkpoint's weights nor this rank's own.",
    (
        "resume",
        "no momentum",
    ): (
        "The optimiser has no momentum, because its state was not broadcast or was lost. The "
        "next step will differ from rank 0's."
    ),
    (
        "resume",
        "other momentum",
    ): (
        "The momentum is not the checkpoint's. Call broadcast_optimizer_state with rank 0 as "
        "the root."
    ),
    ("resume", "rate"): (
        "The learning rate is this rank's own instead of the checkpoint's, which "
        "broadcast_optimizer_state sends too."
    ),
    (
        "resume",
        "settings",
    ): (
        "Momentum or weight decay is this rank's own instead of the checkpoint's. Not only the "
        "learning rate but all settings of the optimiser's groups must continue, so use "
        "broadcast_optimizer_state."
    ),
    (
        "resume",
        "step",
    ): (
        "The step differs from rank 0's, so the ranks would end at different times and wait for "
        "each other, unless you use hvd.broadcast_object."
    ),
    (
        "resume",
        "no whole number",
    ): (
        "resume must return the step as a whole number, for `range(step, ...)`. "
        "hvd.broadcast_object returns what was put in, and a tensor has .item()."
    ),
    # fit
    (
        "fit",
        "own",
    ): (
        "These are the weights of a rank that trains alone on its own rows, so no gradient has been"
        " exchanged."
    ),
    (
        "fit",
        "mean of means",
    ): (
        "This is the average of the ranks' means. The shards have {sizes} rows, so a row of a "
        "small one counts more. Add up losses, divide by all {n} rows, and add up the gradients "
        "(op=hvd.Sum)."
    ),
    (
        "fit",
        "sum of means",
    ): (
        "The gradients of the ranks' means were added up, so the steps are too large by a factor "
        "of about {p}. Divide by all {n} rows instead of by the rank's own."
    ),
    (
        "fit",
        "not divided",
    ): (
        "The losses are added up but not divided, so the steps are too large by a factor of {n}. "
        "Use the mean of all {n} rows instead."
    ),
    (
        "fit",
        "divided again",
    ): (
        "The steps are too small by a factor of {p}, because the losses were divided by all {n} "
        "rows and also averaged over {p} ranks. Parts of a mean must be added up, so use "
        "op=hvd.Sum."
    ),
    (
        "fit",
        "mean of sums",
    ): (
        "The sums of losses were averaged over the {p} ranks, so the steps are too large by a "
        "factor of {n} / {p}. Divide by all {n} rows instead."
    ),
    (
        "fit",
        "times p",
    ): (
        "The steps are too large by a factor of {p}. Was the rate multiplied by hvd.size(), "
        "although the batch here is all {n} rows already? Or was the loss all-reduced before "
        "backward? The backward of hvd.allreduce adds up the gradients of all ranks once more."
    ),
    (
        "fit",
        "accumulated",
    ): (
        "Gradients of earlier steps are still in `grad`, because backward adds to it, so empty it "
        "in every step."
    ),
    (
        "fit",
        "accumulated and summed",
    ): (
        "Gradients of earlier steps are still in `grad`, where they were summed over "
        "the ranks again. Empty `grad` in every step."
    ),
    ("fit", "nothing"): "The weights have not moved, so is it the given model that is trained?",
    ("fit", "not finite"): "The weights are not finite on this rank.",
    (
        "fit",
        "rounded",
    ): (
        "The weights are right to only a few digits, so perhaps something on the way is rounded to "
        "float16 or float32. Look for compression= of DistributedOptimizer, or for a cast."
    ),
    (
        "fit",
        "other",
    ): (
        "These are not the weights that a single process computes. With shards of {sizes} rows, "
        "each rank needs the sum of its losses / {n}, and every step needs the sum of the "
        "gradients."
    ),
    # epoch
    ("epoch", "no such row"): "Some of the rows are not among the {n}.",
    (
        "epoch",
        "all rows",
    ): (
        "Each of {p} ranks goes through all the rows, so an epoch is {p} epochs. Give each rank a "
        "different part of the order."
    ),
    (
        "epoch",
        "rows twice",
    ): (
        "Some rows appear more than once in an epoch. Do all {p} ranks draw the same order, and "
        "take different parts of it?"
    ),
    (
        "epoch",
        "not whole",
    ): "{whole} rows must be taken, because that many of {n} belong to whole steps of {p} ranks.",
    ("epoch", "same order"): "The order is the same in every epoch, so seed it with the epoch.",
    (
        "epoch",
        "not by the epoch",
    ): (
        "The same epoch had two different orders, so the order depends on more than the "
        "epoch. After a restart, rows would therefore appear twice."
    ),
    (
        "epoch",
        "reseeded",
    ): (
        "torch's own generator has changed, so dropout and all else that draws from it depends on "
        "this function. Use a separate generator, as in torch.randperm(n, "
        "generator=torch.Generator().manual_seed(epoch))."
    ),
    ("epoch", "other order"): (
        "The rows do not follow the order torch.randperm(n, "
        "generator=torch.Generator().manual_seed(epoch))."
    ),
    (
        "epoch",
        "different steps",
    ): (
        "The ranks have different numbers of steps, so a rank with one step more waits "
        "forever (n = {n}, {p} ranks)."
    ),
    (
        "epoch",
        "sizes",
    ): "A step must have {rows} rows on every rank, so leave out the remainder of {n}.",
    (
        "epoch",
        "an empty step",
    ): (
        "{n} rows are too few for a step of {rows} rows on each of {p} ranks, so no step at "
        "all is right. Here there is one without rows, because split of an empty tensor gives "
        "one empty part."
    ),
    (
        "epoch",
        "too many steps",
    ): (
        "There are too many steps, because a step takes {rows} rows on each of {p} ranks, but "
        "the data has only {n}."
    ),
    (
        "epoch",
        "too few steps",
    ): (
        "There are too few steps, because {n} // ({rows} * {p}) whole ones fit. If there is no "
        "remainder, the last one counts too."
    ),
    (
        "epoch",
        "not scaled",
    ): (
        "The learning rate is for a single process, but a step has {p} times as many rows, so "
        "multiply by hvd.size()."
    ),
    (
        "epoch",
        "by the root",
    ): (
        "The learning rate is multiplied by the square root of {p}, whereas the lab uses the "
        "linear rule."
    ),
    ("epoch", "rate"): "The learning rate is not base_rate * {p}.",
    # finish
    ("finish", "nobody"): "No rank has written the file.",
    (
        "finish",
        "all write",
    ): "All ranks have written the file, perhaps into the same one, but only rank 0 must write.",
    (
        "finish",
        "local",
    ): (
        "Several ranks have written the file. hvd.local_rank() is 0 once on every node, whereas "
        "hvd.rank() is 0 only once."
    ),
    ("finish", "not rank 0"): "A rank other than 0 has written the file.",
    (
        "finish",
        "other weights",
    ): (
        "The weights in the file differ from the model's. finish must save the given model "
        "without changing it."
    ),
    ("finish", "content"): 'The file must hold {"model": model.state_dict(), "loss": the mean}.',
    (
        "finish",
        "own in the file",
    ): "The file has rank 0's own loss instead of the mean over the ranks.",
    ("finish", "own"): "This is the rank's own loss instead of the mean over the ranks.",
    ("finish", "rank 0's"): "This is rank 0's own loss, so it was broadcast, not averaged.",
    (
        "finish",
        "sum",
    ): "This is the sum over the ranks. hvd.allreduce averages unless op=hvd.Sum is given.",
    ("finish", "loss"): "This is not the mean of the ranks' losses.",
    ("finish", "tensor"): "finish returns a tensor, but it must return a float, so use .item().",
    (
        "finish",
        "no number",
    ): "finish must return the mean loss, which is one number, on every rank.",
}

HINTS: Hints = {
    "10-diagnose": (
        (
            "Go through the edits in the order in which they act, first the start and then the "
            "gradients. Ranks that start apart end apart, but the distances tell you nothing about "
            "rows and files. What is the smallest distance that counts, and which numbers of "
            "writers are wrong?"
        ),
        (
            "Begin with if symptoms['apart_at_start'] > 1e-9: return 'start'. Do the same with "
            "apart_at_end and 'gradients'. Then return 'rows' if rows_counted != rows_there, "
            "'files' if writers != 1, and otherwise 'nothing'."
        ),
    ),
    "10-resume": (
        (
            "Rank 0's parameters, buffers, optimiser state and step must be on all ranks, so which "
            "broadcast sends which of them? One of the broadcasts takes a step with weight decay "
            "on a rank that has no state yet, so what must be sent after it?"
        ),
        (
            "step = broken_resume(...) reads the file on rank 0. Then call "
            "hvd.broadcast_optimizer_state(optimiser, root_rank=0), after it "
            "hvd.broadcast_parameters(model.state_dict(), root_rank=0), and "
            "hvd.broadcast_object(step, root_rank=0, name='step'). Keep all of these calls outside "
            "of any if."
        ),
    ),
    "10-fit": (
        (
            "Two edits are missing, so what exchanges the gradients? Each rank's mean is over its "
            "own rows, so by which number must every rank divide, so that the parts add up to the "
            "mean of all rows?"
        ),
        (
            "The number of all rows is count = hvd.allreduce(torch.tensor(len(x)), op=hvd.Sum), and"
            " the loss is cross_entropy(model(x), y, reduction='sum') / count. Wrap the optimiser "
            "in hvd.DistributedOptimizer(optimiser, named_parameters=model.named_parameters(), "
            "op=hvd.Sum)."
        ),
    ),
    "10-epoch": (
        (
            "All ranks draw the same order, and each takes a different part of it. How many rows do"
            " all ranks take together in one step, and how many such steps fit into n?"
        ),
        (
            "Compute steps = n // (rows_per_rank * hvd.size()), and draw the order as the text "
            "says. One part of it is order[hvd.rank()::hvd.size()], shortened to steps * "
            "rows_per_rank rows. The learning rate is base_rate * hvd.size()."
        ),
    ),
    "10-finish": (
        (
            "One of the two lines is a call in which all ranks take part, while the other is not. "
            "Only the latter may be behind an if. Does allreduce return a float?"
        ),
        (
            "First average on all ranks with hvd.allreduce(torch.tensor(loss, dtype=torch.float64),"
            " name='loss').item(). Then save behind `if hvd.rank() == 0:`, and return the mean on "
            "all ranks."
        ),
    ),
}
