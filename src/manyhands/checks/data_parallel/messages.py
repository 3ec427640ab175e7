"""The messages of unit 01's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "rows": {
        "cover": (1, "every row belongs to exactly one rank, in the order of the ranks"),
        "even": (1, "no rank has two rows more than another, and the larger shards come first"),
    },
    "gradients": {
        "sum": (
            2,
            (
                "in groups of 4, 3 and 2, every trained parameter has the sum over the group, a "
                "tied one once, and frozen ones have no gradient"
            ),
        ),
        "missing": (1, "a gradient that a rank lacks counts as zeros, and no rank waits in vain"),
        "bytes": (
            1,
            "all ranks together move 2 (p - 1) times the size of the gradients, and no more",
        ),
    },
    "share": {
        "losses": (
            2,
            (
                "without decay, the shares add up to the mean loss of the batch, in values and "
                "gradients, even for uneven and empty shards"
            ),
        ),
        "decay": (
            2,
            (
                "with decay, the shares add up to the objective, in which R counts once, a tied "
                "weight once, and a frozen one not at all"
            ),
        ),
    },
    "step": {
        "weights": (
            2,
            (
                "after three steps in groups of 4, 3 and 2, all ranks have the weights that a "
                "single process computes from the whole batch, to 1e-9, each from its share of the "
                "rows"
            ),
        ),
        "objective": (1, "each step returns the objective of the whole batch, on every rank"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "a Tensor with 0 elements": "A shard may be empty, and then it has a sum but no mean.",
        "leaf Variable that requires grad": (
            "Change a parameter outside the graph, under torch.no_grad()."
        ),
        "leaf variable that requires grad": (
            "Change a parameter outside the graph, under torch.no_grad()."
        ),
        "is not one of 0 to": (
            "Ranks are counted in the group here, so use dist.get_rank(group) and "
            "dist.get_world_size(group)."
        ),
        "'NoneType' object has no attribute": (
            "A gradient can be None, on all ranks for a frozen parameter, and on "
            "some ranks for a layer that they did not use, and zeros take its place."
        ),
        "does not require grad": (
            "Backward has nothing to walk through. Does the share depend on the model, even if "
            "the shard is empty?"
        ),
    },
    "group": "Do all ranks of the group make the same calls, in the same order, with group=group?",
    "missing": (
        "One rank has no gradient for the last layer. It must take part with zeros, because all "
        "ranks must send the same list of trained parameters."
    ),
    # rows
    "dealt": (
        "The rows are not in the order of the ranks, perhaps because they were distributed in turn."
        " Here a shard is one slice, so that neighbouring rows stay together."
    ),
    "rows twice": "Some of the {n} rows belong to two of the {p} ranks, so they would count twice.",
    "rows dropped": (
        "Some of the {n} rows belong to none of the {p} ranks, because n // world_size leaves a "
        "remainder."
    ),
    "nothing": "The function returns nothing, so perhaps a `return` is missing.",
    "no slice": (
        "The function returns {got}, but it must return a slice, which is slice(start, stop)."
    ),
    "borrowed": "This is {name}, which the package has, but here you write it yourself.",
    "not all": "Together, the shards do not contain exactly {n} rows.",
    "not even": (
        "At least one of the {p} ranks has too many of the {n} rows, and all others wait for it in "
        "every step. Instead, the first n % world_size ranks take one row more."
    ),
    "rounded up": (
        "It looks as if {n} / {p} were rounded up on every rank, so the last ranks get too few rows"
        " or none. No step takes longer, but the shards are not even. Instead, the first n % "
        "world_size ranks take one row more."
    ),
    "larger last": (
        "The larger shards must come first, so the first n % world_size ranks take one row more."
    ),
    # sum_gradients
    "frozen has a gradient": (
        "{name} is frozen but has a gradient now, so an optimiser with weight decay would move "
        "it. Skip parameters that do not require a gradient."
    ),
    (
        "gradient",
        "tied summed twice",
    ): (
        "{name} is too large by a factor of {p}, perhaps because it is tied, has two "
        "names, and was summed twice, whereas model.parameters() lists it once."
    ),
    (
        "gradient",
        "summed again",
    ): "{name} is too large by a factor of {p}, as if it had been summed twice.",
    (
        "gradient",
        "mean",
    ): (
        "{name} is too small by a factor of {p}, because it is the mean and not the sum. The "
        "division belongs in the loss, where the number of rows is known."
    ),
    ("gradient", "own"): "{name} is this rank's own gradient, so the sum was not written back.",
    (
        "gradient",
        "own divided",
    ): "{name} is this rank's own gradient, but divided, so the sum was not written back.",
    ("gradient", "none"): "{name} has no gradient, so the sum was not written back.",
    (
        "gradient",
        "not finite",
    ): "{name} contains numbers that are not finite. Was a tensor sent before it was filled?",
    (
        "gradient",
        "not waited",
    ): (
        "{name} was read while its all-reduce was under way, because {works} of the calls that "
        "you began with async_op=True were never waited for. Keep what they return, and call "
        "wait() on it."
    ),
    (
        "gradient",
        "never awaited",
    ): (
        "{works} of the calls that you began with async_op=True were never waited for. The "
        "sums are right this time, but only by chance, because calls may end in any order. "
        "Keep what each call returns, and call wait() on it."
    ),
    (
        "gradient",
        "not everywhere",
    ): (
        "{name} is the sum on the ranks {there} of the group, and on no other. Since all "
        "ranks need it, use dist.all_reduce instead of dist.reduce."
    ),
    (
        "gradient",
        "rounded",
    ): (
        "{name} is the sum, but only to a few digits. Was it sent as float32, or shorter? The "
        "gradients here are float64, and so is the sum."
    ),
    (
        "gradient",
        "other",
    ): "{name} is wrong. Do all ranks send the same parameters in the same order?",
    "too much sent": (
        "{sent} numbers were moved among {p} ranks, although {right} are enough. Add up on the way "
        "(all-reduce) and do not gather. Send each trained parameter only once, and frozen ones "
        "never."
    ),
    "too little sent": (
        "No more than {sent} numbers of 8 bytes were moved among {p} ranks, whereas an all-reduce "
        "of all gradients takes {right}."
    ),
    # share
    ("share", "nothing"): "share returns nothing, so perhaps a `return` is missing.",
    (
        "share",
        "gradient",
    ): (
        "The value is right but its gradient is not, perhaps because a part of the share is cut off"
        " from the model (.detach(), .item(), .data, torch.no_grad()). The numbers shown are the "
        "gradients."
    ),
    (
        "share",
        "no tensor",
    ): (
        "A share must be one number in a tensor that keeps its gradient, so use neither .item() "
        "nor .detach()."
    ),
    (
        "share",
        "not finite",
    ): (
        "The sum is not a number. If one of the shards, which have {sizes} rows, is empty, its "
        "mean is not a number either. Instead, add up losses, and divide by n = {n}."
    ),
    (
        "share",
        "mean of means",
    ): (
        "This is the mean of the shards' means. Since the shards have {sizes} rows, a row of a "
        "small one counts more than a row of a large one. Instead, add up losses, and divide "
        "by n = {n}."
    ),
    (
        "share",
        "sum of means",
    ): (
        "This is the sum of the shards' means, which is too large by a factor of about {p}. "
        "Instead, add up losses, and divide by n = {n}."
    ),
    (
        "share",
        "not divided by n",
    ): (
        "The losses are added up but not divided, so they are too large by a factor of {n}, "
        "whereas the objective has their mean."
    ),
    (
        "share",
        "divided again",
    ): (
        "The losses are too small by a factor of {p}, because they were divided by n and by "
        "the world size, too. The shares are added up, not averaged."
    ),
    (
        "share",
        "decay on each",
    ): (
        "The decay counts {p} times, because each of {p} ranks has put all of it into its "
        "share. All shares together must have it once."
    ),
    (
        "share",
        "decay by n",
    ): "The decay was divided by n = {n} with the losses, although it is not a part of their mean.",
    (
        "share",
        "no half",
    ): "The decay is too large by a factor of 2, because R is half the sum of the squares.",
    (
        "share",
        "tied twice",
    ): (
        "The tied weight counts twice in R, although it is one parameter with two names, and "
        "model.parameters() lists it once."
    ),
    (
        "share",
        "frozen",
    ): (
        "R contains the frozen weight, so the objective is too large by a constant, although its "
        "gradient is right. Only trained parameters count."
    ),
    ("share", "no decay"): "The decay is missing from the shares.",
    (
        "share",
        "asks",
    ): (
        "For the same rows and the same model, the ranks get different shares. Does share ask which"
        " rank it is on? The check computes all shares on every rank. R counts once if each of the "
        "world_size shares has an equal part of it."
    ),
    (
        "share",
        "rounded",
    ): (
        "The shares add up to J, but only to a few digits. Since the model is float64, was "
        "something computed as float32, or shorter?"
    ),
    (
        "share",
        "empty without decay",
    ): (
        "A rank whose shard is empty has left out its part of the decay. Every rank "
        "takes an equal part, with or without rows."
    ),
    (
        "share",
        "world of all",
    ): (
        "The decay is divided by the number of ranks that the process group has instead of by "
        "`world_size`, although there are {p} shares here."
    ),
    (
        "share",
        "weights only",
    ): "The biases are missing from R, which is over all numbers in trained parameters.",
    (
        "share",
        "other",
    ): (
        "The shares of {sizes} rows do not add up to the objective, which is the sum of the losses "
        "/ n, plus decay * R counted once over all ranks."
    ),
    # train_step
    ("step", "frozen moved"): "The frozen weight has moved.",
    (
        "step",
        "whole batch",
    ): (
        "More rows went through the model than this rank's share, with {beyond} too many in the "
        "three steps. A rank that computes the whole batch needs no other rank, and saves no "
        "time, so cut out your rows first."
    ),
    (
        "step",
        "accumulated",
    ): (
        "Gradients of earlier steps are still in `grad`, because backward adds to it, so empty it "
        "in every step."
    ),
    ("step", "decay on each"): "In each step, the decay counts {p} times.",
    (
        "step",
        "decay twice",
    ): "The decay counts twice, perhaps once in the share and once more in the update.",
    ("step", "no decay"): "The decay is missing from the update.",
    ("step", "times p"): "The steps are too large by a factor of {p}.",
    (
        "step",
        "divided",
    ): (
        "The steps are too small by a factor of {p}, as if divided by the number of ranks. The "
        "shares add up, so nothing is left to divide."
    ),
    (
        "step",
        "uphill",
    ): (
        "The steps go uphill. While w -= rate * gradient makes the objective smaller, w += rate * "
        "gradient makes it larger."
    ),
    (
        "step",
        "apart",
    ): (
        "The ranks of group {members} have different weights after three steps, so each has taken "
        "its own steps. Are the gradients added up over the group in every step, before the "
        "update?"
    ),
    ("step", "not finite"): "The weights are not finite.",
    (
        "step",
        "other",
    ): (
        "The weights differ from what a single process computes. Rows, rank and world size must be "
        "counted in the group, which is {members} here, and every rank must take the same step."
    ),
    "objective": (
        "This is not the objective of the whole batch before the step. A rank's share is only a "
        "part of it, so add up the shares of all ranks."
    ),
    "objective after": (
        "This is the objective after the update. Compute it before the weights change."
    ),
    "objective divided": (
        "This is too small by a factor of {p}. The shares of all ranks add up to the objective, so "
        "there is nothing left to divide."
    ),
    "objective follows": (
        "The objective of the first step is right. The later ones are wrong because the weights are"
        " wrong, so see the criterion above."
    ),
    "no number": "train_step must return the objective, which is one number.",
}

HINTS: Hints = {  # {name: (where to look, nearly the code)}
    "01-rows": (
        (
            "How many rows do all ranks before this one have together? Each of them has the share "
            "that all ranks have. Some of them have one row more, but never more of them than "
            "there are rows left over."
        ),
        (
            "Take share, extra = divmod(n, world_size). The ranks before `rank` have share rows "
            "each, and the first `extra` of them one more, so start = rank * share + min(rank, "
            "extra). This rank's own slice ends share rows later, or share + 1 if rank < extra."
        ),
    ),
    "01-gradients": (
        (
            "All ranks must make the same calls with the same sizes. What a rank has computed "
            "differs from rank to rank (a gradient may be None there), so go through the list of "
            "parameters, because it is the same everywhere, and so is which of them are trained. A "
            "parameter with two names appears once in model.parameters(). One call for each "
            "parameter will do, or one for all of them joined."
        ),
        (
            "trained = [p for p in model.parameters() if p.requires_grad] is the same list on all "
            "ranks. Join the gradients with torch.cat (torch.zeros_like(p) for a missing one), "
            "call dist.all_reduce(flat, group=group), and then use flat.split([p.numel() for p in "
            "trained]) and view_as. Alternatively, go through trained in a loop, put zeros where "
            "p.grad is None, and call dist.all_reduce(p.grad, group=group)."
        ),
    ),
    "01-share": (
        (
            "For the losses, divide the sum of this rank's losses by the n of the whole batch "
            "instead of by its own rows, so that the shares of all ranks add up. Since the penalty "
            "belongs to no row, it counts once if every rank takes an equal part of it."
        ),
        (
            "Take cross_entropy(model(x), y, reduction='sum') / n for the losses, even if x has no "
            "rows. For R, add up p.square().sum() / 2 over the model.parameters() that require a "
            "gradient, and let each rank take decay / world_size of it."
        ),
    ),
    "01-step": (
        (
            "The three functions above are the step, so what is left is the order, and the group. "
            "Everything that counts ranks must count in the group. What is still in the gradients "
            "before backward? After the update, which number do all ranks return, if each has a "
            "share of it?"
        ),
        (
            "Take rank, p = dist.get_rank(group), dist.get_world_size(group). Take your rows, call "
            "model.zero_grad(), share(...).backward() and sum_gradients(model, group), and then p "
            "-= rate * p.grad under torch.no_grad(). For the return value, too, dist.all_reduce "
            "adds up the shares."
        ),
    ),
}
