"""The words of unit 17's checks: what each criterion says, the likely mistakes, and the hints."""

MARGIN = 3.5  # points of error
CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "schedule": {
        "scaling": (1, "after the warm-up the rate is k times the base rate, or its square root times, by the rule"),
        "warm-up": (1, "the warm-up leads along a straight line from the base rate to the full one, step by step"),
        "drops": (1, "each drop divides the rate, from its epoch on"),
    },
    "lars": {
        "ratio": (1, "a first step without decay: every layer of every run has a ratio of its own"),
        "decay": (1, "with decay: it counts in the step and below the fraction line"),
        "memory": (1, "three steps with momentum and changing rates"),
        "zero": (1, "where a norm is zero, the step is the plain one, and nothing becomes infinite"),
    },
    "noise": {
        "squared": (1, "the squared length of the true gradient, without the noise in it"),
        "trace": (1, "the trace of the covariance of one image's gradient"),
        "scale": (1, "the noise scale: the quotient of the two means"),
    },
    "growing": {
        "g": (1, "g = rate / (1 - m) (N / B - 1)"),
        "noise": (1, "rate / batch is in every phase what it was with the small batch"),
        "fewest": (1, "batches are whole, none is too large, and the steps are as few as can be"),
    },
    "challenge": {
        "budget": (1, "every batch has 32 times the images, and the epochs are not exceeded: counted as they pass"),
        "accuracy": (4, f"the mean test error of 8 runs is at most {MARGIN:g} points above that of small batches, with 95 % confidence"),
    },
}

MISTAKES = {
    # schedule
    "not scaled": "This is the base rate. {rule} scaling with k = {k} makes it larger.",
    "divided": "Divided by k. A larger batch has less noise: it can bear a larger rate.",
    "root of all": "The root of base rate times k. The rule is base rate times the root of k.",
    "other rule": "This is the other rule. Here it is {rule}, with k = {k}.",
    "warm-up too long": "The warm-up has {warm_up} epochs, and is over at epoch {epoch}.",
    "no warm-up": "Epoch {epoch} of a warm-up of {warm_up} epochs: this is already the full rate.",
    "constant": "This is the base rate all through the warm-up, as in Goyal's constant warm-up: when it ends, the rate jumps by a factor of {k}. Let it grow.",
    "from zero": "The warm-up begins at zero here. It begins at the base rate, which is known to work.",
    "geometric": "The rate grows by the same factor in every step. A straight line is wanted: by the same amount.",
    "staircase": "The rate changes once in an epoch. `epoch` has a fraction: let the rate grow in every step.",
    "whole epochs": "At epoch {epoch} the drop is due: epochs need not be whole, and no part of them is cut off before the comparison.",
    "late": "At epoch {epoch} the drop is due: it counts from its epoch on (>=).",
    "no drop": "Drops at {drops}: at epoch {epoch} the rate is no longer the full one.",
    "drops once": "Only one drop counts. At epoch {epoch} those of {drops} that are past all divide the rate.",
    "drop by the sum": "Two drops divide by {by} twice: by {by} ** 2, not by 2 * {by}.",
    "grows": "A drop divides the rate. Here it multiplies.",
    "after the warm-up": "The drops are counted from the end of the warm-up. `drops` are epochs of the whole training, as `epoch` is.",
    "no rate": "Return the rate, a finite number: for every epoch, in the warm-up and after it.",
    "other rate": "Not the rate at epoch {epoch}, with k = {k}, rule {rule}, warm-up {warm_up}.",
    # lars
    "other shapes": "The weights have other shapes now. Change them in place: weight.sub_(...).",
    "not in place": "The weights are what they were. Change them in place: weight.sub_(...); `weight = weight - ...` makes a new tensor with the old name, and `weights[i] = ...` puts a new one into the list: whoever holds the old tensor sees no step.",
    "zero norm": "Some weights are not finite: a norm of zero was divided by. There, the ratio is 1.",
    "stands still": "A layer whose weights are all zero stays there for ever: its ratio is 0. Where a norm is zero, the ratio is 1.",
    "plain": "This is the plain step: no layer has a rate of its own.",
    "global": "One ratio for all layers. LARS has one for each: take the norms of one tensor at a time.",
    "runs together": "The norm was taken over all runs at once. Each run is a training of its own: use norm(), which keeps the first dimension.",
    "inverted": "The ratio is upside down: the norm of the weights is above, that of the gradient below.",
    "trust forgotten": "The ratio lacks the factor `trust`: a step would be as long as the weights themselves.",
    "norm of the sum": "Below the line stands |g| + decay |w|, the sum of two norms; you have the norm of the sum, |g + decay w|.",
    "gradients changed": "The gradients that were given are changed. Only `weights` and `memory` may be: the caller may still need them.",
    "decay not in the norm": "The step has the decay in it, the ratio has not: below the line stands |g| + decay |w|.",
    "decay not in the step": "The ratio has the decay in it, the step has not: it goes along g + decay w.",
    "rate outside": "Right while the rate stays, and wrong when it changes: the memory holds steps, so the rate belongs inside, v = m v + rate * ratio * (g + decay w).",
    "no memory": "The memory is not used: v keeps `momentum` times what it was, in the tensor that was given (`memory[i] = ...` puts another one into the list).",
    "momentum fixed": "The momentum is 0.9 whatever is asked for: take the `momentum` that is given.",
    "rate twice": "The rate counts twice here: it is in the memory, v = m v + rate * ratio * (g + decay w), so it does not belong into w - v as well.",
    "zero gradient": "Where only |g| is zero, the ratio is 1, too. Test |g| itself, because |g + decay w| is not zero there.",
    "zero weights": "Where only |w| is zero, the ratio is 1, too: otherwise a layer whose weights are all zero never moves.",
    "zero in any run": "One run with a norm of zero changes the ratio of all runs of its layer. Each run decides for itself: torch.where chooses number by number.",
    "ratio of 0": "Where a norm is zero, the ratio is 0 here, so that the layer does not move. There, the ratio is 1.",
    "ratio of trust": "Where a norm is zero, the ratio is `trust` here. There, the ratio is 1, without `trust`.",
    "zero is right": "Where a norm is zero, the step would be right, but there is a different mistake, which the other criteria see as well. ",
    "other step": "This is not the step of the three formulas, and none of the usual mistakes. The first difference is in layer {layer}, run {run}: work that one out on paper.",
    # noise
    "mean before norm": "The gradients were averaged first. That takes the noise away which is to be measured: square the length of each, then average.",
    "not squared": "These are lengths. The formulas hold for their squares.",
    "sizes exchanged": "The two batch sizes are exchanged.",
    "large is not enough": "The squared length of the large batches' gradient still has noise in it: trace / {b_large}. Two sizes are needed to take it away.",
    "mean of quotients": "A mean of quotients is biased, and wild where a denominator is small. Average above and below first, then divide once.",
    "first rank": "Only the gradients of rank 0 are used for the small batches. Every rank has one in every step.",
    "one large batch": "The mean over all ranks and all steps is taken as one large batch. A large batch is the mean over the ranks of one step, and there are many of them.",
    "upside down": "The quotient is upside down: noise above, signal below.",
    "without the sizes": "The difference of the squared lengths is trace times (1 / {b_small} - 1 / {b_large}): divide by that.",
    "other estimate": "Not the estimate from batches of {b_small} and {b_large}.",
    # growing
    "g without -1": "This is the approximation for N much larger than B. The -1 makes g zero when the batch is all {images} images.",
    "g without momentum": "Momentum makes every gradient count 1 / (1 - m) times in the end: it belongs into g.",
    "g divided by m": "Divide by 1 - m, not by m.",
    "g times 1 - m": "Divide by 1 - m: momentum makes the noise larger.",
    "g upside down": "N / B: a larger batch has less noise.",
    "other g": "Not g for N = {images} and B = {batch}.",
    "no phases": "Return a list of {count} phases (epochs, rate, batch), with the epochs that were given.",
    "falls twice": "The rate falls and the batch grows: the noise falls twice. One of the two.",
    "nothing falls": "Neither has the rate fallen, nor the batch grown: this phase would be as noisy as the first.",
    "rounded only": "The batch is rounded, and the rate is the first phase's. rate / batch is to stay exactly: rate * larger / batch, a little below the first one.",
    "cut off": "The batch ends at {largest}, and the rate stays: what is left of the drop must go into the rate.",
    "root of the drop": "The batch grows by the root of the drop. rate / batch is to stay: it grows by all of it, {drop} times the first one.",
    "other noise": "rate / batch is not what it was. Against the first phase, the rate would have fallen {drop} times.",
    "above the largest": "A batch is larger than {largest}.",
    "no whole batch": "A batch is a whole number of images.",
    "cut too far": "One image fewer than fit: the quotient is a whole number, of which floats make a little less (0.3 / 0.1 is 2.9999999999999996). Add 1e-9 before you "
                   "round down.",
    "batch kept": "The batch never grows: right noise, and not a step saved.",
    "too many steps": "There are more steps than needed: the rate falls while the batch could still grow (up to {largest}).",
    "too few steps": "There are too few steps: a batch was made larger than the first phase's rate allows. Batches are whole: round down.",
    # challenge
    "asked for more": "train asked for more batches than the epochs have: {steps} steps are all there are.",
    "small batches": "A gradient was taken of a smaller batch. All have at least {batch} images.",
    "too many images": "More images have passed than the epochs have, counting every task that was made. {steps} steps are all there are.",
    "no images": "No gradient was taken with task.gradient.",
    "over the budget": "The error is measured of weights that were trained within the budget: see the criterion above.",
    "no weights": "train returns the weights of all runs, as task.start() gives them.",
    "not finite": "Some weights are not finite: the rate is too large.",
    "broken": "At least one run has learned nothing: {large} % wrong on average. The rate is too large for weights that are still random: warm up.",
    "not learned yet": "{large} % wrong, small batches {small} %: even the images for training are not learned yet. There are 32 times fewer steps: each must go further.",
    "worse on the test": "{large} % wrong, small batches {small} %; with 95 % confidence at most {upper} points worse, and {margin} are allowed. Nearly: warm-up, rate, drops?",
}

HINTS = {  # {name: (where to look or what to compare, the kind of idea that is needed)}
    "17-schedule": (
        "Read the evidence from the middle: the rate at epoch 2 for both rules, then the four epochs before it, which should differ by equal amounts, and last the two epochs of the drops.",
        "There are three kinds of faults: a root that is taken of too much, a fraction that is cut off, and a comparison that is wrong exactly where both sides are equal.",
    ),
    "17-lars": (
        "Four lines, four parts: over what is a norm taken, what does the memory hold, what happens where a norm is zero, and what is below the fraction line?",
        "PyTorch's `tensor.norm()` knows nothing about runs. A memory that holds steps and one that holds directions differ when the rate changes. A norm of a sum is not a sum of norms. And a "
        "ratio of zero, or of infinity, must be replaced before it is used.",
    ),
    "17-noise": (
        "Write the equation down twice, for rows and for ranks * rows images. The left-hand sides are two numbers that you average from the gradients: which mean comes before the square, and which after it?",
        "For the small batches square first, and then average over steps and ranks. For the large ones average over the ranks, then square, then average over the steps. Two linear equations with two unknowns remain.",
    ),
    "17-growing": (
        "rate / batch is to stay what it was in each phase. With the first phase's rate, how large would the batch be? Only where that is larger than `largest` must the "
        "rate fall, and by how much follows from the same quotient.",
        "Find the batch first, round it down and limit it. The rate is what is left: it follows from this batch, and not from the one before rounding. Mind a quotient that is a hair below a whole number.",
    ),
    "17-challenge": (
        "Look at the tutorial's table: which rule comes close to the small batch at 256, and does a warm-up do harm? What must the schedule be asked for in step i of task.steps?",
        "You need a loop over task.steps, the epoch at which each step begins, the rate of your schedule for it, and an update that has a memory: either momentum as in the tutorial's formula, or your LARS with its own rate.",
    ),
}
