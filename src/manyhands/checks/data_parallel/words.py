"""The words of unit 01's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "rows": {
        "cover": (1, "every row belongs to exactly one rank, in the order of the ranks"),
        "even": (1, "no rank has two rows more than another, the larger shards first"),
    },
    "gradients": {
        "sum": (2, "every trained parameter has the sum over the group, a tied one once, in groups of 4, 3 and 2; frozen ones have nothing"),
        "missing": (1, "a rank without a gradient counts as zeros, and nobody waits in vain"),
        "bytes": (1, "all ranks together move 2 (p - 1) times the gradients, and no more"),
    },
    "share": {
        "losses": (2, "without decay, the shares add up to the mean loss of the batch, values and gradients, also for uneven and empty shards"),
        "decay": (2, "with decay, they add up to the objective: R counted once, a tied weight once, a frozen one not"),
    },
    "step": {
        "weights": (2, "after three steps all ranks have the weights of one process with the big batch, to 1e-9, in groups of 4, 3 and 2, each from its share of the rows"),
        "objective": (1, "each step returns the objective of the whole batch, on every rank"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "a Tensor with 0 elements": "A shard may be empty: it has a sum, and no mean.",
        "leaf Variable that requires grad": "Change a parameter outside the graph: under torch.no_grad().",
        "leaf variable that requires grad": "Change a parameter outside the graph: under torch.no_grad().",
        "is not one of 0 to": "Ranks are counted in the group here: dist.get_rank(group) and dist.get_world_size(group).",
        "'NoneType' object has no attribute": "A gradient can be None: of a frozen parameter on all ranks, of a layer that was not used on some. Zeros take its place.",
        "does not require grad": "Backward has nothing to walk through: does the share depend on the model, also where the shard is empty?",
    },
    "group": "Do all ranks of the group make the same calls, in the same order, with group=group?",
    "missing": "One rank has no gradient for the last layer. It must take part with zeros: all ranks send the same list, that of the trained parameters.",
    # rows
    "dealt": "The rows are dealt out like cards. Here a shard is one slice: neighbours stay together.",
    "rows twice": "Some of {n} rows belong to two of {p} ranks: they would count twice.",
    "rows dropped": "Some of {n} rows belong to none of {p} ranks: n // world_size leaves a rest.",
    "nothing": "The function returns nothing: is there a `return`?",
    "no slice": "The function returns {got}: a slice is wanted, slice(start, stop).",
    "borrowed": "This is {name}, which the package has. Here you write it yourself.",
    "not all": "The shards have not {n} rows together.",
    "not even": "The rest of {n} / {p} rows lies on one rank, and all others wait for it in every step: the first n % world_size ranks take one more.",
    "rounded up": "{n} / {p} is rounded up on every rank, so the last ranks get too little, or nothing. No step takes longer for it, but the shards are not "
                  "even: the first n % world_size ranks take one row more than the others.",
    "larger last": "The larger shards come first: the first n % world_size ranks take one more.",
    # sum_gradients
    "frozen has a gradient": "{name} is frozen and has a gradient now: an optimiser with weight decay would move it. Skip what does not require a gradient.",
    ("gradient", "tied summed twice"): "{name} is {p} times too large: it is tied, has two names, and was summed twice. model.parameters() lists it once.",
    ("gradient", "summed again"): "{name} is {p} times too large: summed twice.",
    ("gradient", "mean"): "{name} is {p} times too small: the mean. The sum is wanted; the division belongs into the loss, where the number of rows is known.",
    ("gradient", "own"): "{name} is this rank's own gradient: the sum was not written back.",
    ("gradient", "own divided"): "{name} is this rank's own gradient, divided: the sum was not written back.",
    ("gradient", "none"): "{name} has no gradient: the sum was not written back.",
    ("gradient", "not finite"): "{name} holds numbers that are not finite: was a tensor sent before it was filled?",
    ("gradient", "not waited"): "{name} was read while its all-reduce was under way: {works} of the calls that you began with async_op=True were never "
                                "waited for. Keep what they return, and call wait() on it.",
    ("gradient", "never awaited"): "{works} of the calls that you began with async_op=True were never waited for. The sums are right this time, but only by "
                                   "chance: calls may end in any order. Keep what each call returns, and call wait() on it.",
    ("gradient", "not everywhere"): "{name} is the sum on the ranks {there} of the group, and on no other. All ranks need it: dist.all_reduce, not dist.reduce.",
    ("gradient", "rounded"): "{name} is the sum, but to a few digits only: was it sent as float32, or shorter? The gradients here are float64, and the sum is too.",
    ("gradient", "other"): "{name} is wrong: do all ranks send the same parameters in the same order?",
    "too much sent": "{sent} numbers were moved among {p} ranks, {right} are enough. Add up on the way (all-reduce) and do not gather; send each trained parameter "
                     "once, and frozen ones never.",
    "too little sent": "No more than {sent} numbers of 8 bytes were moved among {p} ranks; an all-reduce of all gradients takes {right}.",
    # share
    ("share", "nothing"): "share returns nothing: is there a `return`?",
    ("share", "gradient"): "The value is right, and its gradient is not: a part of the share knows nothing of the model (.detach(), .item(), .data, "
                           "torch.no_grad()). Shown are the gradients.",
    ("share", "no tensor"): "A share is one number in a tensor that knows its gradient: no .item(), no .detach().",
    ("share", "not finite"): "The sum is not a number. A shard of {sizes} is empty, or the mean of nothing was taken: add up losses, and divide by n = {n}.",
    ("share", "mean of means"): "This is the mean of the shards' means. Shards of {sizes} rows: a row of a small one counts more than a row of a large one. Add up "
                                "losses, and divide by n = {n}.",
    ("share", "sum of means"): "This is the sum of the shards' means, about {p} times too large. Add up losses, and divide by n = {n}.",
    ("share", "not divided by n"): "The losses are added up and not divided: {n} times too large. The objective has their mean.",
    ("share", "divided again"): "The losses are {p} times too small: divided by n, and by the world size too. The shares are added up, not averaged.",
    ("share", "decay on each"): "The decay counts {p} times: each of {p} ranks has put the whole of it into its share. Together they must have it once.",
    ("share", "decay by n"): "The decay was divided by n = {n} with the losses. It is no part of their mean.",
    ("share", "no half"): "The decay is twice too large: R is half the sum of the squares.",
    ("share", "tied twice"): "The tied weight counts twice in R: it is one parameter with two names. model.parameters() lists it once.",
    ("share", "frozen"): "R has the frozen weight in it. Its gradient is right, but the objective has a constant too much: only trained parameters count.",
    ("share", "no decay"): "The decay is not in the shares.",
    ("share", "asks"): "The same rows, the same model, and each rank gets another share: does share ask which rank it is on? The check computes all shares on every rank. R is "
                       "there once if each of world_size shares has an equal part of it.",
    ("share", "rounded"): "The shares add up to J, but to a few digits only: was something computed as float32, or shorter? The model is float64.",
    ("share", "empty without decay"): "A rank whose shard is empty has left out its part of the decay. Every rank takes an equal part, with rows or without.",
    ("share", "world of all"): "The decay is not divided by `world_size`, but by the number of ranks that the process group has. There are {p} shares here.",
    ("share", "weights only"): "The biases are missing from R: it is over all numbers in trained parameters.",
    ("share", "other"): "The shares add up to something else. Shards: {sizes}. Sum of losses / n, and decay * R once over all ranks.",
    # train_step
    ("step", "frozen moved"): "The frozen weight has moved.",
    ("step", "whole batch"): "More rows went through the model than this rank's share: {beyond} too many in the three steps. Who computes the whole batch needs no "
                             "other rank, and saves no time. Cut out your rows first.",
    ("step", "accumulated"): "Gradients of earlier steps are still in `grad`: backward adds to it. Empty it in every step.",
    ("step", "decay on each"): "The decay counts {p} times.",
    ("step", "decay twice"): "The decay counts twice: once in the share, once more in the update.",
    ("step", "no decay"): "There is no decay in the update.",
    ("step", "times p"): "The steps are {p} times too long.",
    ("step", "divided"): "The steps are {p} times too short: divided by the number of ranks. The shares add up; nothing is left to divide.",
    ("step", "uphill"): "The steps go uphill: w -= rate * gradient makes the objective smaller, w += rate * gradient larger.",
    ("step", "apart"): "The ranks of group {members} have different weights after three steps: each has taken its own. Are the gradients added up over the group in every "
                       "step, before the update?",
    ("step", "not finite"): "The weights are not finite.",
    ("step", "other"): "The weights are not those of one process. Group {members}: rows, rank and world size are those of the group; every rank takes the same step.",
    "objective": "This is not the objective of the whole batch before the step: a rank's share is a part of it. Add up the shares of all ranks.",
    "objective after": "This is the objective after the update. Compute it before the weights change.",
    "objective divided": "This is {p} times too small: the shares of all ranks add up to the objective, so there is nothing left to divide.",
    "objective follows": "The objective of the first step is right. Those of later steps are not, for the weights are wrong: see the criterion above.",
    "no number": "train_step returns the objective: one number.",
}

HINTS = {  # {name: (where to look, nearly the code)}
    "01-rows": (
        "How many rows do all ranks before this one have together? Each of them has the share that all have; some of them have one row more, and never "
        "more of them than there are rows left over.",
        "share, extra = divmod(n, world_size). The ranks before `rank` have share rows each, and the first `extra` of them one more: start = rank * share + "
        "min(rank, extra). This rank's own slice ends share rows later, or share + 1 if rank < extra."),
    "01-gradients": (
        "All ranks must make the same calls with the same sizes. What a rank has computed differs from rank to rank (a gradient may be None there), so the list "
        "to go through is that of the parameters, and which of them are trained is the same everywhere. A parameter with two names comes once in "
        "model.parameters(). One call for each parameter will do, or one for all of them joined.",
        "trained = [p for p in model.parameters() if p.requires_grad] is the same list on all ranks. Join the gradients with torch.cat (torch.zeros_like(p) "
        "for a missing one), dist.all_reduce(flat, group=group), then flat.split([p.numel() for p in trained]) and view_as. Or in a loop over trained: put "
        "zeros where p.grad is None, and dist.all_reduce(p.grad, group=group)."),
    "01-share": (
        "Two parts. The losses: the sum of this rank's losses over the n of the whole batch, not over its own rows, so that the shares of all ranks add up. The "
        "penalty belongs to no row: if every rank takes an equal part of it, it is there once.",
        "cross_entropy(model(x), y, reduction='sum') / n for the losses, also if x has no rows. For R: p.square().sum() / 2 over model.parameters() that require "
        "a gradient; each rank takes decay / world_size of it."),
    "01-step": (
        "The three functions above are the step; what is left is the order, and the group. Everything that counts ranks must count in the group. Before backward: "
        "what is still in the gradients? After the update: which number do all ranks return, if each has a share of it?",
        "rank, p = dist.get_rank(group), dist.get_world_size(group). Take your rows, model.zero_grad(), share(...).backward(), sum_gradients(model, group), then "
        "p -= rate * p.grad under torch.no_grad(). dist.all_reduce adds up the shares for the return value too."),
}
