"""The messages of unit 13's checks.

They say what each criterion asks for, the likely mistakes, and the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "part": {
        "cut": (
            1,
            (
                "weight and bias are this rank's, for 4, 3 and 1 ranks and for numbers of channels "
                "that do not divide evenly"
            ),
        ),
        "memory": (
            1,
            "they are leaves that will be trained, and they do not keep the whole weight in memory",
        ),
    },
    "operators": {
        "forward": (
            1,
            (
                "copy returns x, sum returns the sum, and join puts all channels in order, on 4, 3 "
                "and 2 ranks"
            ),
        ),
        "backward": (
            2,
            (
                "copy sums the gradients, sum passes the gradient on, and join keeps the rank's own"
                " channels"
            ),
        ),
        "bytes": (
            1,
            (
                "copy moves bytes in backward only, sum and join move them in forward only, and "
                "none moves more than needed"
            ),
        ),
    },
    "out-split": {
        "values": (
            1,
            (
                "the output equals the whole layer's, with stride, padding and uneven channels, on "
                "4, 3 and 2 ranks"
            ),
        ),
        "gradients": (
            1,
            (
                "the gradients of input, weight and bias equal the whole layer's, with a loss that "
                "all ranks compute"
            ),
        ),
        "bytes": (1, "only outputs travel in forward, and only input gradients in backward"),
    },
    "in-split": {
        "values": (
            1,
            (
                "the output equals the whole layer's, with stride, padding and uneven channels, on "
                "4, 3 and 2 ranks"
            ),
        ),
        "gradients": (
            1,
            (
                "the gradients of input, weight and bias equal the whole layer's, with a loss that "
                "all ranks compute"
            ),
        ),
        "bytes": (1, "partial outputs are summed in forward, and nothing travels in backward"),
    },
    "pair": {
        "values": (1, "the output equals the output of two whole layers with a ReLU between them"),
        "gradients": (
            1,
            "the same holds for the gradients of the input and of both weights and biases",
        ),
        "bytes": (
            1,
            (
                "one sum travels in forward and one in backward, and nothing travels between the "
                "two layers"
            ),
        ),
    },
    "moved": {
        "bytes": (
            1,
            "the predicted bytes are what the ledger measures, for four ways, on 4, 3 and 2 ranks",
        ),
        "side": (
            1,
            "the side is the largest for which the in split moves no more than data parallelism",
        ),
    },
}

_TIMES = (
    "The gradient of {name} is too large by a factor of {size}. All {size} ranks compute the same "
    "loss, so its gradient must be counted only once. "
)
_SUM_BACKWARD = "In backward, a sum of partial outputs passes the gradient on as it is."
_JOIN_BACKWARD = "In backward, a join keeps the slice of this rank's channels as it is."
_COPY = (
    "The gradient of {name} is only this rank's part. Since every rank has used the whole input, "
    "the parts of all ranks must be summed in backward. Send the input through copy_to_parts."
)
_DIVIDED = (
    "The gradient of {name} is too small by a factor of {size}. It was divided, although nothing "
    "had been counted {size} times."
)
_GROUPED = (
    "This is a grouped convolution, in which each rank convolves only its own input channels, to "
    "its own output channels. In a dense layer, however, every output channel depends on every "
    "input channel."
)
_BIAS_EACH = (
    "The bias was added on each of the {size} ranks, which makes {size} times in all. Add it once, "
    "after the sum."
)
_OWN = "This is only this rank's part, without the parts of the other ranks."
_DEALT = (
    "The channels are in a different order, as if they had been distributed over the ranks in turn."
    " Ranks hold contiguous blocks, and rank 0 holds the first one."
)
_REVERSED = "The blocks of channels are in the wrong order, since rank 0's must be the first."
_OWN_FIRST = (
    "The rank's own channels are the first, so the order differs from rank to rank. Rank 0's must "
    "be the first on all ranks."
)
_MEAN = "This is the mean over the ranks. The partial outputs must be summed."
_EVEN = (
    "Channels are missing. If each rank has n // size of them, no rank has the rest. The first n % "
    "size ranks must have one more (see shard)."
)
_WEIGHTS = (
    "If the weights travel instead, every rank holds and computes the whole layer, so nothing is "
    "gained."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "Sizes of tensors must match except in dimension": (
            "By default, torch joins along the axis of the batch, "
            "whereas channels are axis 1 (dim=1)."
        ),
        "channels instead": (
            "The layer's input and its weight have different numbers of channels. In the out split,"
            " every rank has the whole x, whereas in the in split, x already holds only this rank's"
            " channels."
        ),
        "cannot be added": (
            "The ranks sum tensors of different shapes, in forward or in backward. Since each rank "
            "has different channels there, must anything be summed at all?"
        ),
        "package's own answer": (
            "This is what the exercise asks for, and it is closed here, so write it yourself."
        ),
        "CommunicationError": (
            "A rank waited in vain for a message of another rank. All ranks of c must make the same"
            " calls, in forward and in backward."
        ),
    },
    (
        "any",
        "nothing",
    ): (
        "{name} is None. Does the function return it, and does backward return a gradient for each "
        "argument of forward?"
    ),
    ("any", "no tensor"): "{name} is not a tensor.",
    ("any", "shape"): "{name} has the wrong shape.",
    ("any", "other"): "{name} differs from what a single process computes.",
    (
        "any",
        "dtype",
    ): (
        "{name} has a different dtype from the layer's. A part is cut out of the layer, so it must "
        "keep its dtype."
    ),
    (
        "any",
        "in place",
    ): (
        "Forward has written into the x that it was given. Make a new tensor, because the caller "
        "may still need x."
    ),
    (
        "gradient",
        "in place",
    ): (
        "Backward has written into the gradient that it was given. Make a new tensor, because "
        "other operations may still read it."
    ),
    ("gradient", "dtype"): "The gradient of {name} has a different dtype from {name}.",
    (
        "gradient",
        "nothing",
    ): (
        "{name} has no gradient on this rank. Does backward return one for each argument of "
        "forward?"
    ),
    ("gradient", "shape"): "The gradient of {name} has the wrong shape.",
    ("gradient", "other"): "The gradient of {name} differs from what a single process computes.",
    "detached": (
        "The output has no gradient function. What c.allreduce returns, or what was gathered "
        "without gradients, is outside the graph. Put the call into the forward of an "
        "autograd.Function that defines what backward does."
    ),
    "no backward": "Backward was not run, because the output is not right on every rank.",
    "backward cannot begin": (
        "Backward was not run on every rank, because the output has no gradient function (see "
        "above)."
    ),
    # part
    ("part out weight", "dealt"): _DEALT,
    ("part in weight", "dealt"): _DEALT,
    ("part out bias", "dealt"): _DEALT,
    ("part out weight", "even"): _EVEN,
    ("part in weight", "even"): _EVEN,
    ("part out bias", "even"): _EVEN,
    (
        "part out weight",
        "other axis",
    ): (
        "This cuts the input channels. A weight is [output channels, input channels, k, "
        'k], so "out" must cut axis 0.'
    ),
    (
        "part in weight",
        "other axis",
    ): (
        "This cuts the output channels. A weight is [output channels, input channels, k, "
        'k], so "in" must cut axis 1.'
    ),
    (
        "part out weight",
        "whole",
    ): "This is the whole weight, but each rank must keep only its own channels.",
    (
        "part in weight",
        "whole",
    ): "This is the whole weight, but each rank must keep only its own channels.",
    ("part out weight", "grouped"): "Both axes are cut. " + _GROUPED,
    ("part in weight", "grouped"): "Both axes are cut. " + _GROUPED,
    (
        "part out bias",
        "whole bias",
    ): (
        'This is the whole bias. With split="out", there is one number for each of this '
        "rank's output channels."
    ),
    (
        "part in bias",
        "cut bias",
    ): (
        'The bias was cut. With split="in", every rank has all output channels, and '
        "therefore the whole bias."
    ),
    (
        "part in bias",
        "nothing",
    ): 'With split="in", every rank has the whole bias, and adds it after the sum.',
    ("part out bias", "bias made up"): "A layer without a bias (bias=False) must give None.",
    ("part in bias", "bias made up"): "A layer without a bias (bias=False) must give None.",
    "not a leaf": (
        "A part must be a leaf that requires a gradient, because otherwise no optimiser will train "
        "it. Use nn.Parameter(... .detach().clone())."
    ),
    "no parameter": (
        "It is trained, but it is not an nn.Parameter, which the docstring asks for. A module that "
        "it is assigned to would not count it among its parameters(), so no optimiser would "
        "see it."
    ),
    "a view": (
        "A slice is a view, which keeps the whole weight in memory. Clone it, so that the whole "
        "layer can be deleted."
    ),
    "shared": (
        "It has the right size, but its memory belongs to the whole layer, so a step of the "
        "optimiser would change that layer too. Clone it instead."
    ),
    # operators
    (
        "copy",
        "times",
    ): (
        "copy_to_parts sums in forward. Since all ranks have the same x there, forward must return "
        "it as it is."
    ),
    ("sum", "mean"): _MEAN,
    ("sum", "own"): _OWN,
    ("join", "own"): _OWN,
    ("join", "dealt"): _DEALT,
    ("join", "reversed"): _REVERSED,
    (
        "copy x",
        "own",
    ): (
        "copy_to_parts does nothing in backward. Each rank's gradient of {name} is only a part of "
        "the whole, so sum the parts over the ranks."
    ),
    (
        "copy x",
        "mean",
    ): (
        "copy_to_parts takes the mean in backward. Each rank's gradient is only a part of the "
        "whole, so sum the parts instead."
    ),
    ("copy x", "times"): "copy_to_parts sums its gradient twice.",
    ("sum x", "times"): _TIMES + _SUM_BACKWARD,
    ("join x", "times"): _TIMES + _JOIN_BACKWARD,
    ("sum x", "divided"): _DIVIDED,
    ("join x", "divided"): _DIVIDED,
    (
        "join x",
        "whole",
    ): "The gradient has all channels, but join_parts must return only this rank's own channels.",
    (
        "join x",
        "other",
    ): (
        "This is not the gradient of this rank's channels. They begin after the channels of all "
        "lower ranks, and ranks may have different numbers of channels."
    ),
    ("join", "own first"): _OWN_FIRST,
    ("out", "own first"): _OWN_FIRST,
    # layers
    (
        "out",
        "shape",
    ): (
        "The output has the wrong shape. Are stride and padding given to the convolution, and are "
        "the channels of all ranks in the output?"
    ),
    (
        "in",
        "shape",
    ): "The output has the wrong shape. Are stride and padding given to the convolution?",
    ("out", "grouped"): _GROUPED,
    ("in", "grouped"): _GROUPED,
    ("out", "own part"): _OWN,
    ("in", "own part"): _OWN,
    ("out", "dealt"): _DEALT,
    ("out", "reversed"): _REVERSED,
    ("out", "mean"): _MEAN,
    ("in", "mean"): _MEAN,
    ("in", "bias on each"): _BIAS_EACH,
    ("in", "no bias"): "The bias is missing.",
    ("out x", "partial"): _COPY,
    ("out x", "partial, times"): _COPY,
    (
        "out x",
        "nothing",
    ): (
        "The input has no gradient on this rank. Every rank holds x, and the layers below need its "
        "gradient on every rank."
    ),
    ("out x", "times"): _TIMES + _JOIN_BACKWARD,
    ("out weight", "times"): _TIMES + _JOIN_BACKWARD,
    ("out bias", "times"): _TIMES + _JOIN_BACKWARD,
    ("in x", "times"): _TIMES + _SUM_BACKWARD,
    ("in weight", "times"): _TIMES + _SUM_BACKWARD,
    ("in bias", "times"): _TIMES + _SUM_BACKWARD,
    (
        "in bias",
        "divided",
    ): (
        "The gradient of the bias is too small by a factor of {size}. Every rank holds the whole "
        "bias and needs its whole gradient, so add the bias once, after the sum."
    ),
    (
        "in bias",
        "nothing",
    ): (
        "The bias has no gradient on this rank. Every rank holds the whole bias and trains it, so "
        "add it on every rank, after the sum."
    ),
    (
        "in x",
        "other",
    ): (
        "The gradient of this rank's input channels is complete without the other ranks, so nothing"
        " must be added to it."
    ),
    # pair
    ("pair", "shape"): "The output has the wrong shape. Is `padding` given to both convolutions?",
    (
        "pair",
        "own part",
    ): (
        "This is only this rank's part of the sum. The partial outputs of the second layer must be "
        "summed over the ranks."
    ),
    ("pair", "bias on each"): "The bias of the second layer" + _BIAS_EACH[len("The bias") :],
    ("pair", "no bias"): "The bias of the second layer is missing.",
    ("pair", "mean"): _MEAN,
    ("pair", "no relu"): "The ReLU between the two layers is missing.",
    ("pair x", "partial"): _COPY,
    ("pair x", "partial, times"): _COPY,
    ("pair first weight", "times"): _TIMES + _SUM_BACKWARD,
    ("pair x", "times"): _TIMES + _SUM_BACKWARD,
    ("pair second weight", "times"): _TIMES + _SUM_BACKWARD,
    ("pair second bias", "times"): _TIMES + _SUM_BACKWARD,
    ("pair first bias", "times"): _TIMES + _SUM_BACKWARD,
    (
        "pair second bias",
        "nothing",
    ): (
        "The bias of the second layer has no gradient on this rank. Add it on every rank, "
        "after the sum."
    ),
    (
        "pair second bias",
        "divided",
    ): (
        "The gradient of the second layer's bias is too small by a factor of {size}. Add "
        "the bias once, after the sum."
    ),
    # bytes
    ("bytes", "much"): "More bytes than needed travel in {direction}.",
    (
        "bytes",
        "few more",
    ): (
        "A little more than the tensors travels in {direction}, for example a message with sizes. "
        "Only what the table lists may travel. A rank can see the sizes in the tensors that arrive."
    ),
    (
        "bytes",
        "messages",
    ): (
        "More messages than needed travel in {direction}, although the bytes are right. Does an "
        "empty message carry information?"
    ),
    (
        "bytes",
        "little",
    ): (
        "Fewer bytes than necessary travel in {direction}. Do the ranks have something that they "
        "were not given?"
    ),
    (
        "bytes sum forward",
        "much",
    ): (
        "More bytes travel than a sum needs. If every rank gathers all parts and then adds "
        "them up, every part goes to every rank, whereas c.allreduce sends less."
    ),
    (
        "bytes copy backward",
        "little",
    ): "The gradients did not travel in backward, although they must be summed over the ranks.",
    (
        "bytes copy forward",
        "much",
    ): "copy_to_parts needs no message in forward, because every rank already has x.",
    (
        "bytes sum backward",
        "much",
    ): (
        "sum_of_parts needs no message in backward, because every rank already has the "
        "gradient of the sum."
    ),
    (
        "bytes join backward",
        "much",
    ): (
        "join_parts needs no message in backward, because every rank already has the "
        "whole gradient and can cut its slice."
    ),
    (
        "bytes join forward",
        "much",
    ): (
        "join_parts moves more than the channels themselves. Each rank must send only its "
        "own channels, with no zeros around them."
    ),
    (
        "bytes out forward",
        "much",
    ): (
        "More bytes travel in forward than the outputs have. Only the rank's own output "
        "channels must go to the others, with no zeros around them. "
    )
    + _WEIGHTS,
    (
        "bytes out forward",
        "little",
    ): "Fewer bytes travel in forward than the outputs have, so it is not the outputs that travel. "
    + _WEIGHTS,
    (
        "bytes out backward",
        "much",
    ): (
        "More bytes travel in backward than a sum of the input's gradients needs. The "
        "gradient of the output need not travel, because every rank has it whole and "
        "join_parts cuts the rank's own channels out of it. The backward of "
        "functions.allgather, however, sends it."
    ),
    (
        "bytes out backward",
        "little",
    ): (
        "The input's gradients did not travel in backward, although they must be summed "
        "over the ranks."
    ),
    (
        "bytes in forward",
        "much",
    ): (
        "More bytes travel in forward than a sum of the outputs needs. If the ranks gather "
        "the whole input or the whole weight, every rank computes the whole layer, so "
        "nothing is gained. Instead, convolve what is on this rank, and sum the outputs."
    ),
    (
        "bytes in backward",
        "much",
    ): (
        "Nothing needs to travel in backward, because every rank has the gradient of the "
        "output, and no other rank has its input channels."
    ),
    (
        "bytes pair forward",
        "much",
    ): (
        "More than one sum of the last output travels in forward. The second layer needs "
        "exactly the channels that the first one has computed on this rank, so there must "
        "be no join between them."
    ),
    (
        "bytes pair backward",
        "much",
    ): "More than one sum of the input's gradient travels in backward.",
    (
        "bytes pair backward",
        "little",
    ): (
        "The input's gradients did not travel in backward, although they must be summed "
        "over the ranks."
    ),
    (
        "bytes pair forward",
        "little",
    ): (
        "The partial outputs of the second layer did not travel in forward, although "
        "they must be summed over the ranks."
    ),
    # moved
    ("moved", "elements"): 'For "{way}", this counts numbers, but a float32 has 4 bytes.',
    (
        "moved",
        "quarter",
    ): (
        'For "{way}", this is a quarter of what was measured. Are these numbers, of 4 bytes each, '
        "or is it what one of the 4 ranks sends? Count the bytes of all of them together."
    ),
    (
        "moved",
        "sent to itself",
    ): (
        'For "{way}", this is the right number if a rank also sends to itself, but it sends '
        "only to the {size} - 1 others."
    ),
    ("moved", "one rank"): 'For "{way}", this is what one rank sends. Add up all {size} ranks.',
    (
        "moved",
        "direct",
    ): (
        'For "{way}", these are the bytes of a sum for which each rank sends its whole tensor to '
        "each of the others. c.allreduce sends less, because it has two steps, each of which moves "
        "as much as a join."
    ),
    (
        "moved",
        "double",
    ): (
        'For "{way}", this is twice what was measured. A byte counts where it is sent, and not '
        "again where it is received. Moreover, a float32 has 4 bytes."
    ),
    (
        "moved",
        "half",
    ): (
        'For "{way}", this is half of what was measured. A sum has two steps, whereas a join has '
        "one."
    ),
    (
        "moved",
        "forward only",
    ): (
        'For "{way}", this is the forward pass only. In backward, the input\'s gradients are '
        "summed, too."
    ),
    (
        "moved",
        "backward only",
    ): 'For "{way}", this is the backward pass only. In forward, the outputs are joined, too.',
    (
        "moved",
        "joined, not summed",
    ): 'For "{way}", the gradient of x is summed, and a sum costs twice as much as a join.',
    (
        "moved",
        "summed, not joined",
    ): 'For "{way}", the output is joined, and a join costs half as much as a sum.',
    (
        "moved",
        "other",
    ): (
        'For "{way}", the ledger has measured a different number of bytes on {size} ranks. Which '
        "tensor travels, is it joined or summed, and how often in a step?"
    ),
    (
        "side",
        "tutorial",
    ): (
        "This is the side at which the tutorial's lines cross. There, every rank has the whole x, "
        "and its gradient is joined in backward. Here, each rank has only its own channels of x, "
        "so nothing travels in backward."
    ),
    ("side", "one too many"): "At this side, the in split moves more, so round down.",
    (
        "side",
        "one too few",
    ): (
        "With a side that is larger by one, the in split still moves no more bytes than data "
        "parallelism. In this split, nothing travels in backward, and a side at which both move "
        "the same number of bytes counts, too."
    ),
    (
        "side",
        "batch forgotten",
    ): (
        "The output has one image for each sample of the batch, whereas a weight serves all "
        "{batch}."
    ),
    (
        "side",
        "kernel forgotten",
    ): "A weight has {kernel} x {kernel} numbers for each pair of channels.",
    ("side", "area"): "This is the number of pixels, whereas the side is its root.",
    (
        "side",
        "output channels",
    ): (
        "The output channels cancel out, because they are a factor both in the output and in "
        "the weight. What is left is the number of input channels."
    ),
    ("side", "not whole"): "A side is a whole number, so round down (math.isqrt).",
    (
        "side",
        "other",
    ): (
        "Compare the numbers of elements, which are batch * c_out * side * side in the output and "
        "c_out * c_in * kernel * kernel in the weight."
    ),
}

HINTS: Hints = {  # {name: (where to look, which property the right code has)}
    "13-part": (
        (
            "A weight's axes are [output channels, input channels, k, k], and shard(n, rank, size) "
            "is the rank's slice of n channels. Which axis does each split cut, and what does it "
            "do to the bias? What turns a slice into a separate leaf with separate memory, which a "
            "module registers?"
        ),
        (
            "The range that shard returns is taken from one axis of the weight, and the other axes "
            "stay whole. A bias belongs to output channels, so only one of the two splits divides "
            "it. A slice shares its memory with the whole tensor and remembers where it came from. "
            "A leaf does neither, and a layer may also have no bias."
        ),
    ),
    "13-operators": (
        (
            "Read the table row by row. The forward pass of one class is the backward pass of "
            "another, and in each class only one thing travels. What must be kept in ctx for "
            "backward? Note that backward returns as many values as forward has arguments."
        ),
        (
            "In each class, one direction only passes its tensor on, or cuts it, while the other "
            "one sends something. Copy and sum mirror each other, so each needs one all-reduce, "
            "but in opposite directions. A join needs to know, in backward, where this rank's "
            "channels begin in the joined tensor and how many they are, because ranks may have "
            "different numbers of channels. An argument that is not a tensor gets None as its "
            "gradient."
        ),
    ),
    "13-out-split": (
        (
            "Look at the table of exercise 2. All ranks have the same x, which each rank uses only "
            "for its own outputs, and after the convolution, each rank has some of the channels. "
            "Which operator do you need before the convolution, for the sake of backward, and "
            "which one after it?"
        ),
        (
            "There are three steps, and the middle one is an ordinary convolution with this rank's "
            "weight and bias. The step before it passes x on unchanged, but adds up the ranks' "
            "gradients of x, because each rank has used all of x. The step after it gives every "
            "rank all output channels."
        ),
    ),
    "13-in-split": (
        (
            "A rank's convolution gives a part of the sum for every output channel. What would "
            "happen to a bias that every rank adds before the sum? Does any other rank need this "
            "rank's channels of x?"
        ),
        (
            "The convolution itself must not add the bias, because the sum over the ranks would "
            "then contain it once for each rank. Add it once, after the sum, and give it a shape "
            "that fits [batch, channels, height, width]."
        ),
    ),
    "13-pair": (
        (
            "A ReLU works on each number separately, so it does not matter that the other channels "
            "are on other ranks. Start from exercise 3, leave out its join, and go on with "
            "exercise 4. Which operator did you need before the first convolution, and why?"
        ),
        (
            "Nothing travels between the two layers, since the output channels that a rank has "
            "computed are exactly the input channels that its part of the second layer needs. The "
            "operator before the first convolution stays, because backward adds up the gradients "
            "of x there. Exercise 4 already does everything after the ReLU."
        ),
    ),
    "13-moved": (
        (
            "First think about how often each number travels. In a join, every number goes to all "
            "other ranks once, while a sum has two steps, each of which moves as much as a join. "
            "Then read in the table which tensor is joined or summed. For the side, write down "
            "both numbers of elements and divide."
        ),
        (
            "Use the join as the unit, in which each number of the tensor goes to the other size - "
            "1 ranks, in 4 bytes. A sum moves twice as much as a join of the same tensor. An out "
            "split joins in forward and sums in backward, an in split only sums, and data "
            "parallelism sums the gradient of the weight. For the side, both numbers of elements "
            "are products, and side appears squared in only one of them, so you need the integer "
            "root of a quotient."
        ),
    ),
}
