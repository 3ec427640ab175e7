"""The words of exercise 8 of unit 15, a loss over a vocabulary that is cut over the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {
    "vocabulary": {
        "values": (
            1,
            (
                "on each rank, the loss of every position is what a single process with the whole "
                "vocabulary computes, with small scores and with scores in the thousands, in "
                "groups of 4, 3, 2 ranks and of 1"
            ),
        ),
        "gradients": (
            1,
            (
                "on each rank, h has the gradient that a single process computes, and the rank's "
                "columns of the head have their columns of the head's gradient"
            ),
        ),
        "sent": (
            1,
            (
                "in forward, a rank contributes at most three numbers for each position to "
                "all-reduces, and in backward exactly as many as h has"
            ),
        ),
    },
}

_CONSTANT = (
    "The largest score is a constant. Does a gradient flow through it, although all_reduce has "
    "written into it?"
)
_FORGOTTEN = "The largest score was subtracted in one of the two terms, but not in the other one."

MISTAKES: Mistakes = {
    (
        "loss",
        "own largest",
    ): (
        "Each rank subtracts the largest score of its own words. Therefore, the sums of exp have "
        "different scales, and they cannot be added."
    ),
    (
        "loss",
        "not finite",
    ): (
        "The loss is not finite. With scores in the thousands, exp overflows unless the largest "
        "score of all words is subtracted, and the sum is zero if more than that is."
    ),
    (
        "loss",
        "own sum",
    ): (
        "The sum of exp contains the words of this rank only, but it must contain the words of all "
        "ranks."
    ),
    (
        "loss",
        "not masked",
    ): (
        "A rank that does not have the word of a position adds the score of a different word, "
        "although its summand must be zero there."
    ),
    ("loss", "forgotten"): _FORGOTTEN,
    ("loss", "forgotten back"): _FORGOTTEN,
    (
        "loss",
        "shape",
    ): "The function must return the loss of each position, a tensor of shape [positions].",
    (
        "loss h",
        "own",
    ): (
        "h has only the gradient that came back through this rank's words, so the layers before it "
        "would be wrong, even if the loss is right. Where does h enter the cut part?"
    ),
    (
        "loss h",
        "times",
    ): (
        "The gradient of h is too large by a factor of {size}. Is it summed over ranks that all "
        "have the whole gradient?"
    ),
    (
        "loss h",
        "gradient other",
    ): (
        "The gradient of h is not what a single process computes. The largest score is a constant. "
        "Does a gradient flow through it, or is the sum in backward in the wrong place?"
    ),
    (
        "loss head",
        "gradient other",
    ): (
        "The gradient of the head is not what a single process computes. The largest score is a "
        "constant. Does a gradient flow through it, or is a sum in backward in the wrong place?"
    ),
    ("loss h", "gradient not finite"): "The gradient of h is not finite. " + _CONSTANT,
    ("loss head", "gradient not finite"): "The gradient of the head is not finite. " + _CONSTANT,
    "loss forward more": (
        "Forward sends more than three numbers for each position. The scores of other ranks are not"
        " needed, because their largest one and two sums are enough."
    ),
    "loss backward more": (
        "Backward sends more than a tensor as large as h, although neither the scores of a rank nor"
        " the sums need a sum in backward."
    ),
    "loss backward less": (
        "Backward sends less than a tensor as large as h. Since each rank has only a part of the "
        "gradient of h, the parts must be added."
    ),
}

HINTS: Hints = {
    "15-vocabulary": (
        (
            "Begin with the numbers. Print `scores.amax(1)` on each rank for one position, and ask "
            "whether the summands of `total` can be added. Then compare the gradient of h on two "
            "ranks. Which of your functions did `column` need?"
        ),
        (
            "A constant that all ranks must share is computed from the words of one rank. A tensor "
            "that is whole on all ranks enters a cut product without the function that adds its "
            "gradients. Neither repair needs the scores of other ranks, and no gradient flows "
            "through a constant."
        ),
    ),
}
