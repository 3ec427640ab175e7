"""The words of unit 13's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "part": {
        "cut": (1, "weight and bias are this rank's, for 4, 3 and 1 ranks and numbers of channels that do not divide"),
        "memory": (1, "they are leaves that will be trained, and do not keep the whole weight in memory"),
    },
    "operators": {
        "forward": (1, "copy gives x, sum gives the sum, join puts all channels in order, on 4, 3 and 2 ranks"),
        "backward": (2, "copy sums the gradients, sum passes the gradient on, join keeps the rank's own channels"),
        "bytes": (1, "copy moves bytes in backward only, sum and join in forward only, and no more than needed"),
    },
    "out-split": {
        "values": (1, "the output is that of the whole layer, with stride, padding and uneven channels, on 4, 3 and 2 ranks"),
        "gradients": (1, "the gradients of input, weight and bias are those of the whole layer, with a loss that all ranks compute"),
        "bytes": (1, "outputs travel in forward, input gradients in backward; weights stay where they are"),
    },
    "in-split": {
        "values": (1, "the output is that of the whole layer, with stride, padding and uneven channels, on 4, 3 and 2 ranks"),
        "gradients": (1, "the gradients of input, weight and bias are those of the whole layer, with a loss that all ranks compute"),
        "bytes": (1, "partial outputs are summed in forward, and nothing travels in backward"),
    },
    "pair": {
        "values": (1, "the output is that of two whole layers with a ReLU between them"),
        "gradients": (1, "so are the gradients of the input and of both weights and biases"),
        "bytes": (1, "one sum in forward and one in backward; between the two layers nothing travels"),
    },
    "moved": {
        "bytes": (1, "the predicted bytes are those that the ledger measures, four ways, on 4, 3 and 2 ranks"),
        "side": (1, "the largest image for which the in split moves no more than data parallelism"),
    },
}

_TIMES = "The gradient of {name} is {size} times too large. All {size} ranks compute the same loss, so its gradient must be counted once: "
_SUM_BACKWARD = "in backward, a sum of partial outputs passes the gradient on as it is."
_JOIN_BACKWARD = "in backward, a join keeps the slice of this rank's channels as it is."
_COPY = ("The gradient of {name} is only this rank's part. Every rank has used the whole input, so the parts of all ranks must be summed in "
         "backward: send the input through copy_to_parts.")
_DIVIDED = "The gradient of {name} is {size} times too small: it was divided, though nothing had been counted {size} times."
_GROUPED = ("This is a grouped convolution: each rank convolved only its own input channels, to its own output channels. In a dense layer every "
            "output channel depends on every input channel.")
_BIAS_EACH = "The bias was added on each of the {size} ranks, so {size} times in all. Add it once, after the sum."
_OWN = "This is this rank's part only: nothing came from the other ranks."
_DEALT = "The channels are in another order, as if they had been dealt out like cards. Ranks hold contiguous blocks: rank 0 the first ones."
_REVERSED = "The blocks of channels are in the wrong order: rank 0's come first."
_OWN_FIRST = "The rank's own channels come first, then those of the others: so every rank has another order. Rank 0's come first on all ranks."
_MEAN = "This is the mean over the ranks. The partial outputs must be summed."
_EVEN = "Channels are missing: n // size of them for each rank leaves the rest to nobody. The first n % size ranks have one more (see shard)."
_WEIGHTS = "If it is the weights that travel, every rank holds and computes the whole layer, and nothing is gained."

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "Sizes of tensors must match except in dimension": "Torch joins along the axis of the batch unless you say otherwise: channels are axis 1 (dim=1).",
        "channels instead": "The layer got an input with another number of channels than its weight has. Out split: the whole x on every rank. "
                            "In split: x holds this rank's channels already.",
        "cannot be added": "The ranks sum tensors of different shapes, in forward or in backward. Each of them has other channels there: is anything to be summed at all?",
        "package's own answer": "This is what the exercise asks for, and it is closed here: write it yourself.",
        "CommunicationError": "A rank waited in vain for a message of another one: all ranks of c must make the same calls, in forward and in backward.",
    },
    ("any", "nothing"): "{name} is None. Does the function return it, and does backward return a gradient for each argument of forward?",
    ("any", "no tensor"): "{name} is not a tensor.",
    ("any", "shape"): "{name} has the wrong shape.",
    ("any", "other"): "{name} has other values than that of one process.",
    ("any", "dtype"): "{name} has another dtype than the layer: a part is cut out of it, and keeps its dtype.",
    ("any", "in place"): "Forward has written into the x that it was given. The caller may still need it: make a new tensor.",
    ("gradient", "in place"): "Backward has written into the gradient that it was given. Others may still read it: make a new tensor.",
    ("gradient", "dtype"): "The gradient of {name} has another dtype than {name}.",
    ("gradient", "nothing"): "{name} has no gradient on this rank. Does backward return one for each argument of forward?",
    ("gradient", "shape"): "The gradient of {name} has the wrong shape.",
    ("gradient", "other"): "The gradient of {name} has other values than that of one process.",
    "detached": "The output has no gradient function: what comes from c.allreduce, or was gathered without gradients, stands outside the graph. "
                "Put the call into the forward of an autograd.Function that says what backward does.",
    "no backward": "Backward was not run, because the output is not right on every rank.",
    "backward cannot begin": "Backward was not run on every rank: the output has no gradient function, see above.",
    # part
    ("part out weight", "dealt"): _DEALT, ("part in weight", "dealt"): _DEALT, ("part out bias", "dealt"): _DEALT,
    ("part out weight", "even"): _EVEN, ("part in weight", "even"): _EVEN, ("part out bias", "even"): _EVEN,
    ("part out weight", "other axis"): "This cuts the input channels. A weight is [output channels, input channels, k, k]: \"out\" cuts axis 0.",
    ("part in weight", "other axis"): "This cuts the output channels. A weight is [output channels, input channels, k, k]: \"in\" cuts axis 1.",
    ("part out weight", "whole"): "This is the whole weight: each rank keeps its own channels only.",
    ("part in weight", "whole"): "This is the whole weight: each rank keeps its own channels only.",
    ("part out weight", "grouped"): "Both axes are cut: " + _GROUPED,
    ("part in weight", "grouped"): "Both axes are cut: " + _GROUPED,
    ("part out bias", "whole bias"): "This is the whole bias. With split=\"out\" there is one number for each of this rank's output channels.",
    ("part in bias", "cut bias"): "The bias was cut. With split=\"in\" every rank has all output channels, and so the whole bias.",
    ("part in bias", "nothing"): "With split=\"in\" every rank has the whole bias, and adds it after the sum.",
    ("part out bias", "bias made up"): "A layer without a bias (bias=False) must give None.",
    ("part in bias", "bias made up"): "A layer without a bias (bias=False) must give None.",
    "not a leaf": "A part must be a leaf that requires a gradient, or no optimiser will train it: nn.Parameter(... .detach().clone()).",
    "no parameter": "It is trained, but it is no nn.Parameter, as the docstring asks: a module that it is assigned to would not count it among its "
                    "parameters(), and no optimiser would see it.",
    "a view": "A slice is a view: it keeps the whole weight in memory. Clone it, so that the whole layer can be given up.",
    "shared": "It has the right size, and its memory is the whole layer's own: a step of the optimiser would change that layer too. Clone it.",
    # operators
    ("copy", "times"): "copy_to_parts sums in forward. All ranks have the same x there: forward gives it back as it is.",
    ("sum", "mean"): _MEAN, ("sum", "own"): _OWN, ("join", "own"): _OWN, ("join", "dealt"): _DEALT, ("join", "reversed"): _REVERSED,
    ("copy x", "own"): "copy_to_parts does nothing in backward. Each rank's {name} is a part of the whole one: sum them over the ranks.",
    ("copy x", "mean"): "copy_to_parts takes the mean in backward. Each rank's gradient is a part of the whole one: sum them.",
    ("copy x", "times"): "copy_to_parts sums its gradient twice.",
    ("sum x", "times"): _TIMES + _SUM_BACKWARD, ("join x", "times"): _TIMES + _JOIN_BACKWARD,
    ("sum x", "divided"): _DIVIDED, ("join x", "divided"): _DIVIDED,
    ("join x", "whole"): "The gradient has all channels. join_parts gives this rank's own channels back.",
    ("join x", "other"): "The gradient holds other channels than this rank's. They begin after those of all lower ranks, and ranks may have "
                                "different numbers of channels.",
    ("join", "own first"): _OWN_FIRST, ("out", "own first"): _OWN_FIRST,
    # layers
    ("out", "shape"): "The output has the wrong shape. Are stride and padding given to the convolution, and are the channels of all ranks there?",
    ("in", "shape"): "The output has the wrong shape. Are stride and padding given to the convolution?",
    ("out", "grouped"): _GROUPED, ("in", "grouped"): _GROUPED, ("out", "own part"): _OWN, ("in", "own part"): _OWN,
    ("out", "dealt"): _DEALT, ("out", "reversed"): _REVERSED, ("out", "mean"): _MEAN, ("in", "mean"): _MEAN,
    ("in", "bias on each"): _BIAS_EACH, ("in", "no bias"): "The bias is missing.",
    ("out x", "partial"): _COPY, ("out x", "partial, times"): _COPY,
    ("out x", "nothing"): "The input has no gradient on this rank. Every rank holds x, and layers below it wait for its gradient on every rank.",
    ("out x", "times"): _TIMES + _JOIN_BACKWARD, ("out weight", "times"): _TIMES + _JOIN_BACKWARD, ("out bias", "times"): _TIMES + _JOIN_BACKWARD,
    ("in x", "times"): _TIMES + _SUM_BACKWARD, ("in weight", "times"): _TIMES + _SUM_BACKWARD, ("in bias", "times"): _TIMES + _SUM_BACKWARD,
    ("in bias", "divided"): "The bias has {size} times too small a gradient. Every rank holds the whole bias and needs its whole gradient: add it once, "
                            "after the sum.",
    ("in bias", "nothing"): "The bias has no gradient on this rank. Every rank holds the whole bias and trains it: add it on every rank, after the sum.",
    ("in x", "other"): "The gradient of this rank's input channels is complete without the other ranks: nothing is to be added to it.",
    # pair
    ("pair", "shape"): "The output has the wrong shape. Is `padding` given to both convolutions?",
    ("pair", "own part"): "This is this rank's part of the sum: the partial outputs of the second layer must be summed over the ranks.",
    ("pair", "bias on each"): "The bias of the second layer" + _BIAS_EACH[len("The bias"):], ("pair", "no bias"): "The bias of the second layer is missing.",
    ("pair", "mean"): _MEAN, ("pair", "no relu"): "The ReLU between the two layers is missing.",
    ("pair x", "partial"): _COPY, ("pair x", "partial, times"): _COPY,
    ("pair first weight", "times"): _TIMES + _SUM_BACKWARD, ("pair x", "times"): _TIMES + _SUM_BACKWARD,
    ("pair second weight", "times"): _TIMES + _SUM_BACKWARD, ("pair second bias", "times"): _TIMES + _SUM_BACKWARD,
    ("pair first bias", "times"): _TIMES + _SUM_BACKWARD,
    ("pair second bias", "nothing"): "The bias of the second layer has no gradient on this rank: add it on every rank, after the sum.",
    ("pair second bias", "divided"): "The bias of the second layer has {size} times too small a gradient: add it once, after the sum.",
    # bytes
    ("bytes", "much"): "More bytes than needed travel in {direction}.",
    ("bytes", "few more"): "A little more than the tensors travels in {direction}, for example a message with sizes. Only what the table lists may travel. A rank can "
                           "see the sizes in what arrives.",
    ("bytes", "messages"): "More messages than needed travel in {direction}, although the bytes are right. Does an empty message carry information?",
    ("bytes", "little"): "Fewer bytes than possible travel in {direction}: do the ranks have something that they were not given?",
    ("bytes sum forward", "much"): "More bytes travel than a sum needs. If everyone gathers all parts and then adds them up, every part goes to every rank; "
                                   "c.allreduce sends less.",
    ("bytes copy backward", "little"): "The gradients did not travel in backward: they must be summed over the ranks.",
    ("bytes copy forward", "much"): "copy_to_parts needs no message in forward: every rank has x already.",
    ("bytes sum backward", "much"): "sum_of_parts needs no message in backward: every rank has the gradient of the sum already.",
    ("bytes join backward", "much"): "join_parts needs no message in backward: every rank has the gradient of the whole already, and cuts its slice.",
    ("bytes join forward", "much"): "join_parts moves more than the channels themselves. Each rank sends its own channels, and no zeros around them.",
    ("bytes out forward", "much"): "More bytes travel in forward than the outputs have. Only the rank's own output channels go to the others, with no zeros around "
                                   "them. " + _WEIGHTS,
    ("bytes out forward", "little"): "Fewer bytes travel in forward than the outputs have: something else travels. " + _WEIGHTS,
    ("bytes out backward", "much"): "More bytes travel in backward than a sum of the input's gradients needs. The gradient of the output need not travel: "
                                    "every rank has it whole, and join_parts cuts its own channels out of it. The backward of functions.allgather sends it.",
    ("bytes out backward", "little"): "The input's gradients did not travel in backward: they must be summed over the ranks.",
    ("bytes in forward", "much"): "More bytes travel in forward than a sum of the outputs needs. If the ranks gather the whole input or the whole weight, every "
                                  "rank computes the whole layer, and nothing is gained: convolve what is here, and sum.",
    ("bytes in backward", "much"): "Nothing needs to travel in backward: every rank has the gradient of the output, and its own input channels are nobody else's.",
    ("bytes pair forward", "much"): "More than one sum of the last output travels in forward. The second layer takes in exactly the channels that the first one "
                                    "has made on this rank: no join between them.",
    ("bytes pair backward", "much"): "More than one sum of the input's gradient travels in backward.",
    ("bytes pair backward", "little"): "The input's gradients did not travel in backward: they must be summed over the ranks.",
    ("bytes pair forward", "little"): "The partial outputs of the second layer did not travel in forward: they must be summed over the ranks.",
    # moved
    ("moved", "elements"): "{way}: this counts numbers. A float32 has 4 bytes.",
    ("moved", "quarter"): "{way}: a quarter of what was measured. Are these numbers, of 4 bytes each, or what one of the 4 ranks sends? All of them together are asked.",
    ("moved", "sent to itself"): "{way}: nothing is sent to the rank itself. There are {size} - 1 others.",
    ("moved", "one rank"): "{way}: this is what one rank sends. Add up all {size} ranks.",
    ("moved", "direct"): "{way}: these are the bytes of a sum for which each rank sends its whole tensor to each of the others. c.allreduce sends less: in two "
                         "steps, of which each moves as much as a join.",
    ("moved", "double"): "{way}: this is twice what was measured. A byte counts where it is sent, and not again where it is taken in; and a float32 has 4 bytes.",
    ("moved", "half"): "{way}: this is half of what was measured. A sum has two steps, a join one.",
    ("moved", "forward only"): "{way}: this is the forward pass only. In backward the input's gradients are summed.",
    ("moved", "backward only"): "{way}: this is the backward pass only. In forward the outputs are joined.",
    ("moved", "joined, not summed"): "{way}: the gradient of x is summed, and a sum costs twice a join.",
    ("moved", "summed, not joined"): "{way}: the output is joined, and a join costs half a sum.",
    ("moved", "other"): "{way}: the ledger has measured another number on {size} ranks. Which tensor travels, is it joined or summed, and how often in a step?",
    ("side", "tutorial"): "This is the side at which the tutorial's lines cross: there every rank has the whole x, and its gradient is joined in backward. Here each rank "
                          "has its own channels of x only, and nothing travels in backward.",
    ("side", "one too many"): "At this side the in split moves more: round down.",
    ("side", "one too few"): "One side more moves no more bytes than data parallelism, too. In this split nothing travels in backward; and where both move the same, the in split counts.",
    ("side", "batch forgotten"): "The output has one image for each sample of the batch, and a weight serves all {batch}.",
    ("side", "kernel forgotten"): "A weight has {kernel} x {kernel} numbers for each pair of channels.",
    ("side", "area"): "This is the number of pixels. The side is its root.",
    ("side", "output channels"): "The output channels stand on both sides, in the output and in the weight, and cancel out: what is left is the number of "
                                 "input channels.",
    ("side", "not whole"): "A side is a whole number: round down (math.isqrt).",
    ("side", "other"): "Compare the numbers of elements: batch * c_out * side * side in the output, c_out * c_in * kernel * kernel in the weight.",
}

HINTS = {  # {name: (where to look, which property the right code has)}
    "13-part": (
        "A weight's axes are [output channels, input channels, k, k]; shard(n, rank, size) is the rank's slice of n channels. Which axis does each split cut, and "
        "what does it do to the bias? Then: what makes a leaf of its own of a slice, registered in a module, with memory of its own?",
        "The range that shard returns is taken from one axis of the weight, and the other axes stay whole. A bias belongs to output channels, so only one of the two "
        "splits divides it. A slice shares its memory with the whole tensor and remembers where it came from. A leaf does neither, and a layer may also have no bias.",
    ),
    "13-operators": (
        "Read the table line by line: forward of one class is backward of another, and only one thing in each class travels. What must be kept in ctx for "
        "backward? And backward returns as many values as forward has arguments.",
        "In each class, one direction only passes its tensor on, and the other one sends something. Copy and sum are each other's mirror, so each needs one all-reduce, "
        "but in opposite directions. A join needs to know, in backward, where this rank's channels begin in the joined tensor and how many they are, because ranks may "
        "have different numbers of channels. An argument that is not a tensor gets None as its gradient.",
    ),
    "13-out-split": (
        "Look at the table of exercise 2: x is the same on all ranks and each rank uses it for its own outputs only; after the convolution each rank has some "
        "channels. Which operator stands before, for the sake of backward, and which after?",
        "Three steps, and the middle one is an ordinary convolution with this rank's weight and bias. The step before it passes x on unchanged, but adds up the ranks' "
        "gradients of x, since each rank has used all of x. The step after it gives every rank all output channels.",
    ),
    "13-in-split": (
        "What a rank's convolution gives is a part of the sum for every output channel. What would happen to a bias that every rank adds before the sum? And does "
        "any other rank need this rank's channels of x?",
        "The convolution itself must not add the bias, because the sum over the ranks would then contain it once for each rank. Add it once, after the sum, and give it "
        "a shape that fits to [batch, channels, height, width].",
    ),
    "13-pair": (
        "A ReLU works on each number by itself, so it does not mind that the other channels are elsewhere. Start from exercise 3, leave out its join, and go on with "
        "exercise 4. What stood before the first convolution, and why?",
        "Between the two layers nothing travels: the output channels that a rank has computed are exactly the input channels that its part of the second layer needs. "
        "The operator before the first convolution stays, because backward adds up the gradients of x there, and exercise 4 already does everything after the ReLU.",
    ),
    "13-moved": (
        "First how often each number travels: in a join every number goes to all the other ranks once; a sum has two steps, each of which moves as much as a join. "
        "Then read the table: which tensor is joined or summed? For the side, write down both numbers of elements and divide.",
        "Count the join as the unit: each of the other size - 1 ranks gets every number of the tensor, in 4 bytes. A sum moves twice as much as a join of the same tensor. "
        "An output split joins in forward and sums in backward, an input split only sums, and data parallelism sums the weight. For the side, both numbers of elements "
        "are products in which side appears squared on one side only, so an integer root of a quotient is left.",
    ),
}
