"""The words of exercise 8 of unit 15: a loss over a vocabulary that is cut over the ranks."""

CRITERIA = {
    "vocabulary": {
        "values": (1, "on each rank, the loss of every place is what one process with the whole vocabulary computes, with small scores and with "
                      "scores in the thousands; groups of 4, 3, 2 ranks and of 1"),
        "gradients": (1, "on each rank, h has the gradient of one process, and the rank's columns of the head have their columns of the head's gradient"),
        "sent": (1, "in forward, a rank hands at most three numbers for each place to all-reduces, and in backward exactly as many as h has"),
    },
}

MISTAKES = {
    ("loss", "own largest"): "Each rank subtracts the largest score of its own words. The sums of exp then have different scales, and they cannot be added.",
    ("loss", "not finite"): "The loss is not finite with scores in the thousands. exp overflows unless the largest score of all words is subtracted, and the sum is zero if more than that is.",
    ("loss", "own sum"): "The sum of exp contains the words of this rank only.",
    ("loss", "not masked"): "A rank that does not have the word of a place adds the score of a different word. Its summand must be zero there.",
    ("loss", "forgotten"): "The largest score was subtracted in one of the two terms, and not in the other one.",
    ("loss", "forgotten back"): "The largest score was subtracted in one of the two terms, and not in the other one.",
    ("loss", "shape"): "The function must return the loss of each place, a tensor of shape [places].",
    ("loss h", "own"): "h has only the gradient that came back through this rank's words. The layers before it would be wrong, although the loss is right. Where does h enter the cut part?",
    ("loss h", "times"): "The gradient of h is {size} times too large: it is summed over ranks that all have the whole of it.",
    ("loss h", "gradient other"): "The gradient of h is not that of one process. The largest score is a constant: does a gradient flow through it? Or is the sum in backward in the wrong place?",
    ("loss head", "gradient other"): "The gradient of the head is not that of one process. The largest score is a constant: does a gradient flow through it? Or is a sum in backward in the wrong place?",
    ("loss h", "gradient not finite"): "The gradient of h is not finite. The largest score is a constant: does a gradient flow through it, although all_reduce has written into it?",
    ("loss head", "gradient not finite"): "The gradient of the head is not finite. The largest score is a constant: does a gradient flow through it, although all_reduce has written into it?",
    "loss forward more": "Forward sends more than three numbers for each place. The scores of other ranks are not needed, only their largest one and two sums.",
    "loss backward more": "Backward sends more than a tensor as large as h. The scores of a rank, and the sums, need no sum in backward.",
    "loss backward less": "Backward sends less than a tensor as large as h. Each rank has only a part of the gradient of h, and the parts must be added.",
}

HINTS = {
    "15-vocabulary": (
        "Numbers first: print `scores.amax(1)` on each rank for one place, and ask whether the summands of `total` can be added. Then compare the gradient of h on two ranks. Which of your functions did `column` need?",
        "A constant that all ranks must share is computed from the words of one rank. A tensor that is whole on all ranks enters a cut product without the function that adds its gradients. Neither repair needs the scores of other ranks, and no gradient flows through a constant.",
    ),
}
