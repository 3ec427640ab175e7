"""The messages of unit 17's checks.

They say what each criterion asks for, the likely mistakes, and the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

MARGIN = 3.5  # points of error
CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "schedule": {
        "scaling": (
            1,
            (
                "after the warm-up, the rate is the base rate times k, or times the square root of "
                "k, depending on the rule"
            ),
        ),
        "warm-up": (
            1,
            "the warm-up follows a straight line from the base rate to the full rate, step by step",
        ),
        "drops": (1, "each drop divides the rate, from its epoch on"),
    },
    "lars": {
        "ratio": (
            1,
            "in a first step without decay, every layer of every run has a separate ratio",
        ),
        "decay": (1, "decay counts both in the step and below the fraction line"),
        "memory": (1, "three steps with momentum and changing rates give the right weights"),
        "zero": (
            1,
            "where a norm is zero, the step is the plain one, and nothing becomes infinite",
        ),
    },
    "noise": {
        "squared": (
            1,
            "the first number is the squared length of the true gradient, without the noise in it",
        ),
        "trace": (1, "the second number is the trace of the covariance of one image's gradient"),
        "scale": (1, "the third number is the noise scale, which is the quotient of the two means"),
    },
    "growing": {
        "g": (1, "g = rate / (1 - m) (N / B - 1)"),
        "noise": (1, "in every phase, rate / batch is what it was with the small batch"),
        "fewest": (
            1,
            "batches are whole, none is too large, and there are as few steps as possible",
        ),
    },
    "challenge": {
        "budget": (
            1,
            (
                "every batch has 32 times the images, and the batches, which are counted as they "
                "pass, do not exceed the epochs"
            ),
        ),
        "accuracy": (
            4,
            (
                f"the mean test error of 8 runs is at most {MARGIN:g} points above the error of "
                "small batches, with 95 % confidence"
            ),
        ),
    },
}

MISTAKES: Mistakes = {
    # schedule
    "not scaled": "This is the base rate, but {rule} scaling with k = {k} makes it larger.",
    "divided": (
        "The base rate is divided by k. However, a larger batch has less noise, so it allows a "
        "larger rate."
    ),
    "root of all": (
        "This is the root of base rate times k, but the rule is base rate times the root of k."
    ),
    "other rule": "This is the other rule. Here the rule is {rule}, with k = {k}.",
    "warm-up too long": "The warm-up has {warm_up} epochs, so it is over at epoch {epoch}.",
    "no warm-up": (
        "This is already the full rate, although epoch {epoch} is in a warm-up of {warm_up} epochs."
    ),
    "constant": (
        "This is the base rate during the whole warm-up, as in Goyal's constant warm-up. When the "
        "warm-up ends, the rate jumps to its full value, so let it grow instead."
    ),
    "from zero": (
        "The warm-up begins at zero here. It must begin at the base rate, which is known to work."
    ),
    "geometric": (
        "The rate grows by the same factor in every step. To follow a straight line, it must grow "
        "by the same amount."
    ),
    "staircase": (
        "The rate changes only once in an epoch. Since `epoch` has a fraction, let the rate grow in"
        " every step."
    ),
    "whole epochs": (
        "The drop is due at epoch {epoch}. Since epochs need not be whole, do not cut off their "
        "fraction before the comparison."
    ),
    "late": "The drop is due at epoch {epoch}, because it counts from its epoch on (>=).",
    "no drop": "With drops at {drops}, the rate is no longer the full one at epoch {epoch}.",
    "drops once": (
        "Only one drop counts, but at epoch {epoch} every drop of {drops} that has been reached "
        "must divide the rate."
    ),
    "drop by the sum": "Two drops divide by {by} twice, that is, by {by} ** 2 and not by 2 * {by}.",
    "grows": "A drop multiplies the rate here, but it must divide it.",
    "after the warm-up": (
        "The drops are counted from the end of the warm-up, but like `epoch`, `drops` are epochs of"
        " the whole training run."
    ),
    "no rate": (
        "Return the rate as a finite number for every epoch, both during the warm-up and after it."
    ),
    "other rate": (
        "This is not the rate at epoch {epoch}, with k = {k}, rule {rule}, warm-up {warm_up}."
    ),
    # lars
    "other shapes": (
        "The weights have different shapes now. Change them in place, as in weight.sub_(...)."
    ),
    "not in place": (
        "The weights have not changed. Change them in place, as in weight.sub_(...), because "
        "`weight = weight - ...` makes a new tensor with the old name, and `weights[i] = ...` puts "
        "a new one into the list, so that whatever refers to the old tensor sees no step."
    ),
    "zero norm": (
        "Some weights are not finite, perhaps because a norm of zero was divided by. Where a norm "
        "is zero, the ratio must be 1."
    ),
    "stands still": (
        "A layer whose weights are all zero never moves, because its ratio is 0. Where a norm is "
        "zero, the ratio must be 1."
    ),
    "plain": "This is the plain step, in which no layer has a separate rate.",
    "global": (
        "All layers have the same ratio, but LARS has one for each layer. Take the norms of one "
        "tensor at a time."
    ),
    "runs together": (
        "The norm was taken over all runs together, but each run is a separate training run. Use "
        "norm(), which keeps the first dimension."
    ),
    "inverted": (
        "The ratio is upside down. The norm of the weights belongs above the line, and the norm of "
        "the gradient below it."
    ),
    "trust forgotten": (
        "The ratio lacks the factor `trust`, so a step would be as long as the weights themselves."
    ),
    "norm of the sum": (
        "Below the line, the formula has |g| + decay |w|, the sum of two norms, but you have the "
        "norm of the sum, |g + decay w|."
    ),
    "gradients changed": (
        "The given gradients were changed. Change only `weights` and `memory`, because the caller "
        "may still need the gradients."
    ),
    "decay not in the norm": (
        "The step contains the decay, but the ratio does not. Below the line, the formula has |g| +"
        " decay |w|."
    ),
    "decay not in the step": (
        "The ratio contains the decay, but the step does not. It must go along g + decay w."
    ),
    "rate outside": (
        "This is right while the rate stays the same, but wrong when it changes. Since the memory "
        "holds steps, the rate belongs inside, v = m v + rate * ratio * (g + decay w)."
    ),
    "no memory": (
        "The memory is not used. v must keep `momentum` times what it was, in the tensor that was "
        "given (whereas `memory[i] = ...` puts a new one into the list)."
    ),
    "momentum fixed": "The momentum is always 0.9. Use the `momentum` that is given instead.",
    "rate twice": (
        "The rate counts twice here. Since it is in the memory, v = m v + rate * ratio * (g + decay"
        " w), it does not belong in w - v as well."
    ),
    "zero gradient": (
        "Where only |g| is zero, the ratio must be 1, too. Test |g| itself, because |g + decay w| "
        "is not zero there."
    ),
    "zero weights": (
        "Where only |w| is zero, the ratio must be 1, too, because otherwise a layer whose weights "
        "are all zero never moves."
    ),
    "zero in any run": (
        "One run with a norm of zero changes the ratio of all runs of its layer, but each run must "
        "decide separately. torch.where chooses each element separately."
    ),
    "ratio of 0": (
        "Where a norm is zero, the ratio is 0 here, so that the layer does not move. It must be 1 "
        "instead."
    ),
    "ratio of trust": (
        "Where a norm is zero, the ratio is `trust` here. It must be 1 instead, without `trust`."
    ),
    "zero is right": (
        "Where a norm is zero, the step would be right, but there is a different mistake, which the"
        " other criteria see as well. "
    ),
    "other step": (
        "This is not the step of the three formulas, and none of the usual mistakes explains it. "
        "The first difference is in layer {layer}, run {run}, so work that one out on paper."
    ),
    # noise
    "mean before norm": (
        "The gradients were averaged first, which removes the noise that is to be measured. Square "
        "the length of each gradient, and then average."
    ),
    "not squared": "These are lengths, whereas the formulas hold for their squares.",
    "sizes exchanged": "The two batch sizes are exchanged.",
    "large is not enough": (
        "The squared length of the large batches' gradient still contains noise, namely trace / "
        "{b_large}. Use both batch sizes to remove it."
    ),
    "mean of quotients": (
        "A mean of quotients is biased, and varies widely where a denominator is small. Average "
        "numerator and denominator first, and then divide once."
    ),
    "first rank": (
        "Only the gradients of rank 0 are used for the small batches, although every rank has one "
        "in every step."
    ),
    "one large batch": (
        "The mean over all ranks and all steps is taken as one large batch. However, a large batch "
        "is the mean over the ranks of one step, so there are many of them."
    ),
    "upside down": (
        "The quotient is upside down. The noise belongs above the line, and the signal below it."
    ),
    "without the sizes": (
        "The difference of the squared lengths is trace times (1 / {b_small} - 1 / {b_large}), so "
        "divide by that factor."
    ),
    "other estimate": "This is not the estimate from batches of {b_small} and {b_large}.",
    # growing
    "g without -1": (
        "This is the approximation for N much larger than B. With the -1, g is zero when the batch "
        "is all {images} images."
    ),
    "g without momentum": (
        "With momentum, every gradient counts 1 / (1 - m) times in the end, so this factor belongs "
        "in g."
    ),
    "g divided by m": "Divide by 1 - m, and not by m.",
    "g times 1 - m": "Divide by 1 - m instead, because momentum makes the noise larger.",
    "g upside down": "The quotient must be N / B, because a larger batch has less noise.",
    "other g": "This is not g for N = {images} and B = {batch}.",
    "no phases": (
        "Return a list of {count} phases (epochs, rate, batch), with the epochs that were given."
    ),
    "falls twice": (
        "Here the rate falls and the batch grows, so the noise falls twice. Change only one of the "
        "two."
    ),
    "nothing falls": (
        "Neither has the rate fallen nor the batch grown, so this phase would be as noisy as the "
        "first."
    ),
    "rounded only": (
        "The batch is rounded, but the rate is still the rate of the first phase. To keep rate / "
        "batch exactly, use rate * larger / batch, which is a little below the first one."
    ),
    "cut off": (
        "The batch stops at {largest}, but the rate stays the same. The rest of the drop must go "
        "into the rate."
    ),
    "root of the drop": (
        "The batch grows by the root of the drop. To keep rate / batch, it must grow by the whole "
        "drop, to {drop} times the first batch."
    ),
    "other noise": (
        "rate / batch is not what it was. Compared with the first phase, the rate would have been "
        "divided by {drop}."
    ),
    "above the largest": "A batch is larger than {largest}.",
    "no whole batch": "A batch must be a whole number of images.",
    "cut too far": (
        "The batch has one image fewer than fit. The quotient is a whole number, but floats make it"
        " a little smaller (0.3 / 0.1 is 2.9999999999999996), so add 1e-9 before you round down."
    ),
    "batch kept": "The batch never grows. The noise is right, but no step is saved.",
    "too many steps": (
        "There are more steps than needed, because the rate falls while the batch could still grow "
        "(up to {largest})."
    ),
    "too few steps": (
        "There are too few steps, because a batch is larger than the first phase's rate allows. "
        "Round batches down to whole numbers."
    ),
    # challenge
    "asked for more": (
        "train asked for more batches than the epochs have, although there are only {steps} steps."
    ),
    "small batches": (
        "A gradient was taken of a smaller batch, but every batch must have at least {batch} "
        "images."
    ),
    "too many images": (
        "More images were used than the epochs have, counting every task that was made. There are "
        "only {steps} steps."
    ),
    "no images": "No gradient was taken with task.gradient.",
    "over the budget": (
        "The error is measured only for weights that were trained within the budget, so look at the"
        " criterion above first."
    ),
    "no weights": "train must return the weights of all runs, in the form that task.start() gives.",
    "not finite": "Some weights are not finite, probably because the rate is too large.",
    "broken": (
        "At least one run has learned almost nothing, with {large} % wrong on average. Perhaps the "
        "rate is too large for weights that are still random, so use a warm-up."
    ),
    "not learned yet": (
        "{large} % are wrong, compared with {small} % for small batches, and even the training "
        "images are not learned yet. Since there are 32 times fewer steps, each must go further."
    ),
    "worse on the test": (
        "{large} % are wrong, compared with {small} % for small batches. With 95 % confidence, this"
        " is at most {upper} points worse, but only {margin} are allowed. Try a different warm-up, "
        "rate or schedule of drops."
    ),
}

HINTS: Hints = {  # {name: (where to look or what to compare, the kind of idea that is needed)}
    "17-schedule": (
        (
            "Read the evidence from the middle. Begin with the rate at epoch 2 for both rules, then"
            " look at the four epochs before it, which should differ by equal amounts, and finally "
            "at the two epochs of the drops."
        ),
        (
            "There are three kinds of faults, namely a root that is taken of too much, a fraction "
            "that is cut off, and a comparison that is wrong exactly where both sides are equal."
        ),
    ),
    "17-lars": (
        (
            "The four lines of the evidence belong to four parts. Over what is a norm taken, what "
            "does the memory hold, what happens where a norm is zero, and what is below the "
            "fraction line?"
        ),
        (
            "PyTorch's `tensor.norm()` knows nothing about runs. A memory that holds steps and one "
            "that holds directions differ when the rate changes. A norm of a sum is not a sum of "
            "norms. Finally, a ratio of zero, or of infinity, must be replaced before it is used."
        ),
    ),
    "17-noise": (
        (
            "Write the equation down twice, for rows and for ranks * rows images. The left-hand "
            "sides are two numbers that you average from the gradients. Which mean is taken before "
            "the square, and which after it?"
        ),
        (
            "For the small batches, square first and then average over steps and ranks. For the "
            "large ones, average over the ranks, then square, and then average over the steps. Two "
            "linear equations with two unknowns remain."
        ),
    ),
    "17-growing": (
        (
            "In each phase, rate / batch must stay what it was. How large would the batch be with "
            "the rate of the first phase? Only where that is larger than `largest` must the rate "
            "fall, and by how much follows from the same quotient."
        ),
        (
            "Find the batch first, round it down and limit it. The rate then follows from this "
            "batch, and not from the one before rounding. Take care with a quotient that is a tiny "
            "bit below a whole number."
        ),
    ),
    "17-challenge": (
        (
            "Look at the tutorial's table. Which rule comes close to the small batch at 256, and "
            "does a warm-up do harm? Which epoch must you give to the schedule in step i of "
            "task.steps?"
        ),
        (
            "You need a loop over task.steps, the epoch at which each step begins, the rate of your"
            " schedule for it, and an update that has a memory. This is either momentum as in the "
            "tutorial's formula, or your LARS with a separate rate."
        ),
    ),
}
