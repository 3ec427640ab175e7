"""The words of unit 15's checks: what each criterion says, the likely mistakes, and the hints.

For exercise 8 they are in `vocabulary_words`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.checks.tensor_parallel import vocabulary_messages

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "f-and-g": {
        "values": (
            1,
            (
                "in forward, copy_to returns x, reduce_from returns the sum over the group, and x "
                "keeps its numbers, in groups of 4, 3, 2 ranks and of 1"
            ),
        ),
        "gradients": (
            1,
            (
                "in backward, copy_to sums the gradients, reduce_from passes on the gradient that "
                "it gets, and the incoming gradient keeps its numbers"
            ),
        ),
        "calls": (
            1,
            (
                "there is one all-reduce in the backward of copy_to, one in the forward of "
                "reduce_from, and no other call"
            ),
        ),
    },
    "column": {
        "values": (1, "each rank has its own columns of the output that a single process computes"),
        "gradients": (
            1,
            (
                "on each rank, x has the gradient that a single process computes, and w and b have "
                "the rank's columns of their gradients"
            ),
        ),
        "calls": (1, "nothing is sent in forward, and one all-reduce of the size of x in backward"),
    },
    "row": {
        "values": (
            1,
            (
                "each rank has the whole output that a single process computes, which contains the "
                "bias once"
            ),
        ),
        "gradients": (
            1,
            (
                "x and w have the rank's part of the gradients that a single process computes, and "
                "b has its whole gradient on each rank"
            ),
        ),
        "calls": (
            1,
            "one all-reduce of the size of the output is sent in forward, and nothing in backward",
        ),
    },
    "mlp": {
        "values": (
            1,
            (
                "the output is what a single process computes, with tanh after each layer and "
                "therefore after the sum"
            ),
        ),
        "gradients": (
            1,
            "all gradients are what a single process computes, or the rank's part of it",
        ),
        "calls": (
            1,
            (
                "there is one all-reduce in forward, one in backward, and nothing between the two "
                "layers"
            ),
        ),
    },
    "attention": {
        "pieces": (
            1,
            (
                "cut_heads returns copies of the q, k and v columns of the rank's own heads, and of"
                " the rows of `out` that belong to these heads"
            ),
        ),
        "refused": (
            1,
            "cut_heads raises a ValueError if the ranks cannot have the same number of heads",
        ),
        "values": (
            1,
            (
                "on each rank, the output is what a single process with all heads computes, with a "
                "causal mask"
            ),
        ),
        "gradients": (
            1,
            (
                "on each rank, x has the gradient that a single process computes, and the rank's "
                "pieces of qkv and out have their parts of the gradients"
            ),
        ),
        "calls": (1, "there is one all-reduce in forward, one in backward, and no other message"),
    },
    "reductions": {
        "forward": (1, "under all layouts, the products are what a single process computes"),
        "backward": (2, "the gradients of both operands are what a single process computes"),
        "refused": (
            1,
            (
                "two dimensions of a product on one axis are refused with a ValueError, whereas "
                "other layouts are accepted"
            ),
        ),
    },
    "price": {
        "axes": (
            1,
            (
                "the answer names as many all-reduces over each axis as the ledger sees in forward "
                "and backward"
            ),
        ),
        "numbers": (1, "each of these all-reduces has as many numbers as the ledger sees"),
    },
    "choose": {
        "fits": (1, "each layout is possible and fits into the memory of a rank"),
        "cheapest": (1, "of all layouts that fit, it sends the fewest bytes"),
    },
}

PLACES = {
    "copy": "copy_to",
    "again": "copy_to",
    "sum": "reduce_from",
    "copy x": "copy_to",
    "loss": "vocabulary_loss",
    "qkv": "The piece of qkv",
    "out": "The piece of out",
}

_OUTSIDE = (
    "Call your functions copy_to and reduce_from where a tensor enters or leaves the cut part."
)
_ON_EACH = (
    "The output contains the bias {size} times, because every rank adds it before the sum. Add it "
    "once, after the sum."
)
_COPY = (
    "x has only the gradient that came back through this rank's part of the weights. Where does x "
    "enter the cut part? Call copy_to there, because it sums the gradients in backward."
)
_TIMES = (
    "The gradient of {name} is too large by a factor of {size}. Is it summed over ranks that all "
    "have the whole gradient?"
)
_STRIDES = (
    "In {what}, one rank's numbers are in a different order in memory than the other ranks' "
    "numbers. clone() keeps this order, and all_reduce adds up memory as it is, so give it a "
    "contiguous copy."
)
_IN_GROUP = (
    "Ranks are counted inside the group, so use dist.get_rank(group) and "
    "dist.get_world_size(group)."
)
_MEAN = (
    "This is the mean over the ranks. Each rank has a part of a sum, so the parts must be added and"
    " not averaged."
)
_OWN_G = (
    "This is what this rank has alone. The sum over the ranks is missing, which reduce_from "
    "computes."
)
_TRAINED = (
    " Every rank holds b and trains it, so every rank must add the whole of it, after the sum."
)
_TANH = (
    " The tanh of a sum is not the sum of tanhs, so first sum, then add the bias, and then take "
    "tanh."
)

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "this is the package's own answer": (
            "The package has these functions, too, but here you write your own."
        ),
        "Trying to backward through the graph a second time": (
            "Backward reached a graph that was already used up. Is a tensor kept from an earlier "
            "call?"
        ),
        "returned an incorrect number of gradients": (
            "backward must return a gradient for each argument of forward after ctx, and None for "
            "an argument that is not a tensor."
        ),
        "a leaf Variable that requires grad is being used in an in-place operation": (
            "all_reduce would write into x itself, which belongs to other code, so reduce a copy."
        ),
        "is not part of group": _IN_GROUP,
    },
    "hangs": (
        "Ranks wait for each other. The checks use small groups too. Is `group` given to every call"
        " of torch.distributed, and to copy_to and reduce_from?"
    ),
    # all layers
    "nothing": "{what} returned None instead of a tensor.",
    "no tensor": "{what} did not return a tensor.",
    "dtype": "{what} gives a different dtype, although numbers must stay float64.",
    "shape": "{what} has the wrong shape.",
    "not finite": "{what} gives numbers that are not finite.",
    "rounded": (
        "{what} gives the right numbers with too few digits. Is something on the way not float64?"
    ),
    "other": "{what} does not give what a single process computes.",
    "other in a group": (
        "{what} gives wrong numbers in the group of the ranks {members}, although it gives the "
        "right ones in the group of all ranks. "
    )
    + _IN_GROUP,
    "late": (
        "{what} returns before its all-reduce has ended. If you call all_reduce with async_op=True,"
        " wait for the work handle that it returns."
    ),
    "touched": (
        "{what} has changed {name} itself, which other code still needs. Because all_reduce writes "
        "into its tensor, give it a copy."
    ),
    "gradient touched": (
        "backward has changed the gradient that it received, which other code still needs. For "
        "example, x + layer(x) gives both the same one. Give all_reduce a copy."
    ),
    "detached": (
        "The output has no gradient function. What dist.all_reduce has written is outside the "
        "graph, so it must be called in the forward of an autograd.Function, whose backward you "
        "write. "
    )
    + _OUTSIDE,
    "no backward": "Backward was not run, because the output has the wrong shape.",
    "gradient nothing": "{name} has no gradient on this rank.",
    "gradient own": _COPY,
    "gradient times": _TIMES,
    "gradient divided": (
        "The gradient of {name} is too small by a factor of {size}. Is a mean taken where a sum is "
        "needed?"
    ),
    "gradient nothing summed": "The gradient of {name} is zero on this rank.",
    "gradient shape": "The gradient of {name} has the wrong shape.",
    "gradient dtype": "The gradient of {name} has the wrong dtype.",
    "gradient not finite": "The gradient of {name} is not finite.",
    "gradient rounded": (
        "The gradient of {name} has too few right digits. Is something on the way not float64?"
    ),
    "gradient other": "The gradient of {name} is not what a single process computes.",
    "gradient other in a group": (
        "The gradient of {name} is wrong in the group of the ranks {members}, although it is right "
        "in the group of all ranks. "
    )
    + _IN_GROUP,
    "gradient follows": (
        "The gradient of {name} is not what a single process computes, but the output is wrong, "
        "too. Repair the criterion above first."
    ),
    "many": "There are more calls in {way} than necessary, since one all-reduce at most is needed.",
    "few": "There is no all-reduce in {way}.",
    "bytes": (
        "The number of calls in {way} is right, but they send too many bytes. It must be one "
        "all_reduce (an all_gather sends more), of the smallest tensor that suffices."
    ),
    "fewer bytes": (
        "The number of calls in {way} is right, but they send too few bytes. Is it a different "
        "tensor, or one of shorter numbers (float32)?"
    ),
    # f and g
    (
        "copy",
        "times",
    ): (
        "copy_to sums in forward. All ranks already have the same x there, so forward must return "
        "it as it is."
    ),
    ("sum", "own"): "reduce_from returns x, but its forward must return the sum over the group.",
    (
        "sum",
        "mean",
    ): (
        "reduce_from gives the mean, but the ranks have parts of a sum, which must be added and not"
        " averaged."
    ),
    (
        "copy x",
        "own",
    ): (
        "In backward, copy_to returns only this rank's own gradient, which came back through its "
        "own part of the weights. Sum the gradients of all ranks, and wait for the sum."
    ),
    (
        "copy x",
        "mean",
    ): (
        "copy_to takes the mean in backward. Each rank's gradient is only a part of the whole "
        "gradient, so sum the parts."
    ),
    ("copy x", "times"): "copy_to sums its gradients twice, although once is enough.",
    ("copy x", "strides"): _STRIDES,
    ("sum", "strides"): _STRIDES,
    (
        "again x",
        "own",
    ): (
        "copy_to was called for a different group between forward and backward, and backward used "
        "that group. ctx belongs to one call, so keep the group there."
    ),
    (
        "sum x",
        "times",
    ): (
        "reduce_from sums its gradients in backward. Every rank computes the same loss from the "
        "same output, so each already has the whole gradient and must pass it on as it is."
    ),
    (
        "sum x",
        "divided",
    ): "reduce_from divides its gradient, although the sum has slope 1 in each rank's x.",
    ("copy forward", "many"): "copy_to needs no call in forward, because every rank has x already.",
    (
        "sum backward",
        "many",
    ): (
        "reduce_from needs no call in backward, because every rank has the gradient of the sum "
        "already."
    ),
    # column
    (
        "column",
        "whole",
    ): (
        "This is the whole output. Each rank keeps only its own columns, because the next layer "
        "needs no more."
    ),
    (
        "column",
        "summed",
    ): (
        "This is the sum of the ranks' outputs. They are columns of one matrix, next to each other,"
        " so nothing must be added up."
    ),
    (
        "column",
        "x summed",
    ): "x is summed over the ranks, although all of them have the same x already.",
    (
        "column",
        "no bias",
    ): "The bias is missing. Add b, because it holds the numbers of this rank's columns.",
    (
        "column forward",
        "many",
    ): (
        "Nothing has to be sent in forward, because every rank has x and keeps only its own "
        "columns."
    ),
    (
        "column backward",
        "many",
    ): (
        "There is more than one call in backward. Only x, which all ranks have, needs a sum, "
        "because w and b are this rank's own."
    ),
    (
        "column backward",
        "few",
    ): (
        "There is no all-reduce in backward. Since each rank's columns give x only a part of its "
        "gradient, the parts must be summed."
    ),
    # row
    ("row", "bias on each"): _ON_EACH,
    ("mlp", "bias on each"): _ON_EACH,
    ("row", "no bias"): "The bias is missing. Every rank adds it, after the sum.",
    ("mlp", "no bias"): "The second bias is missing. Every rank adds it, after the sum.",
    ("row", "own"): _OWN_G,
    ("row", "own and bias"): _OWN_G,
    ("mlp", "own and bias"): _OWN_G,
    ("row", "mean"): _MEAN,
    ("row", "mean of all"): _MEAN,
    ("attention", "mean"): _MEAN,
    ("row b", "nothing"): "b has no gradient on this rank." + _TRAINED,
    ("row b", "nothing summed"): "b has a gradient of zero on this rank." + _TRAINED,
    ("row b", "divided"): "The gradient of b is too small by a factor of {size}." + _TRAINED,
    (
        "row backward",
        "many",
    ): (
        "Nothing has to be sent in backward, because each rank has the gradient of the output, and "
        "no other rank has its columns of x."
    ),
    # mlp
    ("mlp", "tanh before the sum"): "The last tanh is taken of each rank's part, before the sum."
    + _TANH,
    (
        "mlp",
        "tanh and bias before the sum",
    ): "The bias and the last tanh are applied before the sum." + _TANH,
    ("mlp", "no tanh at the end"): "The tanh after the second layer is missing.",
    ("mlp", "no tanh between"): "The tanh between the layers is missing.",
    (
        "mlp down_bias",
        "nothing",
    ): (
        "The second bias has no gradient on this rank. Every rank holds it and trains it, so every "
        "rank must add it, after the sum."
    ),
    (
        "mlp forward",
        "many",
    ): (
        "There is more than one call in forward. tanh treats each number separately, and the rows "
        "of `down` on this rank belong to exactly the columns that `up` has produced here, so "
        "nothing has to be sent between the layers."
    ),
    (
        "mlp backward",
        "many",
    ): "There is more than one call in backward, although only x needs a sum.",
    # heads
    (
        "qkv",
        "nothing",
    ): (
        "There is no piece of qkv. cut_heads must return two tensors, the piece of qkv and the "
        "piece of `out`."
    ),
    (
        "qkv",
        "one block",
    ): (
        "This cuts the columns of qkv as one block, so that the first rank has nothing of v. q, k "
        "and v are next to each other, and each of the three must be cut."
    ),
    ("qkv", "whole"): "This is the whole of qkv, which no rank may hold.",
    ("out", "whole"): "This is the whole of `out`, which no rank may hold.",
    (
        "qkv",
        "dealt",
    ): (
        "These are the heads {rank}, {rank} + {size} and so on. Rank r must have heads / size "
        "neighbouring heads, beginning with head r * heads / size."
    ),
    (
        "out",
        "dealt",
    ): (
        "These are the rows of the heads {rank}, {rank} + {size} and so on. Rank r must have the "
        "rows of heads / size neighbouring heads."
    ),
    (
        "qkv",
        "head by head",
    ): (
        "These are the right columns in a different order. As in the whole matrix, q of all the "
        "rank's heads must come first, then k, and then v."
    ),
    (
        "qkv",
        "q alone",
    ): (
        "This contains only the columns of q, although the columns of k and v for the same heads "
        "belong to it, too."
    ),
    (
        "qkv",
        "through heads",
    ): (
        "This gives each rank a part of every head. A rank needs whole heads, because softmax is "
        "taken over the whole product of q and k."
    ),
    (
        "out",
        "columns",
    ): (
        "These are columns of `out`, but the output of a head is multiplied by the rows of `out` "
        "that belong to it."
    ),
    "a view": (
        "{what} is a view, which keeps {got} numbers in memory but needs only {needed}. Return a "
        "separate copy (clone), so that the whole can be freed."
    ),
    "shared": (
        "{what} is the whole itself or shares its memory, so a step of the optimiser would change "
        "the whole, too. Return a separate copy (clone), even on {size} rank(s)."
    ),
    "cut in place": (
        "cut_heads has changed {name}, the whole weight, from which the pieces of other ranks must "
        "still be cut."
    ),
    "accepted": (
        "{heads} heads on {size} ranks were accepted, although some rank would have a part of a "
        "head. Raise a ValueError."
    ),
    "other error": (
        "{heads} heads on {size} ranks raised {error}. Say what is wrong in a ValueError, before "
        "anything is cut."
    ),
    # attention
    ("attention", "own"): _OWN_G,
    (
        "attention",
        "not causal",
    ): (
        "A position sees positions that come after it. The mask must hide them, so set their scores"
        " to -inf before softmax."
    ),
    (
        "attention",
        "mask after softmax",
    ): (
        "The mask is applied after softmax, so that the weights of a position no longer sum to 1. "
        "Set the scores of later positions to -inf before it."
    ),
    (
        "attention",
        "mask of zeros",
    ): (
        "Scores of later positions are set to 0, but softmax still gives them weight, because "
        "exp(0) is 1. Set them to -inf."
    ),
    (
        "attention",
        "later only",
    ): "A position sees itself and later positions, but it must see itself and earlier ones.",
    (
        "attention",
        "all heads here",
    ): (
        "This cuts the rank's columns into all heads of the layer. A rank has only heads / ranks of"
        " them, each as large as in a single process."
    ),
    (
        "attention",
        "one later",
    ): (
        "A position sees the position that comes after it, but it must see only itself and earlier "
        "ones. Set all later scores to -inf before softmax."
    ),
    **{
        (
            "attention",
            f"heads {n}",
        ): (
            "A rank has heads / ranks heads, but this cuts its columns into a different number of "
            "heads. Is a number of heads written down? Compute it from `heads` and the size of the "
            "group."
        )
        for n in range(1, 65)
    },
    (
        "attention",
        "not scaled",
    ): "The scores are not divided by the square root of the size of a head.",
    (
        "attention",
        "scaled by width",
    ): (
        "The scores are divided by the square root of the width, but the size of a head is what "
        "counts."
    ),
    (
        "attention",
        "scaled by all",
    ): (
        "The scores are divided by the square root of the size of all heads together, but the size "
        "of one head is what counts."
    ),
    (
        "attention",
        "softmax over queries",
    ): (
        "softmax is taken over the positions that look. For each of them, take it over the "
        "positions that it sees, which are the last axis of q @ k.mT."
    ),
    (
        "attention",
        "not finite",
    ): (
        "The output has numbers that are not finite. Does the mask hide a position from itself, so "
        "that nothing is left for softmax?"
    ),
    (
        "attention forward",
        "many",
    ): (
        "There is more than one call in forward. Each rank's heads are whole, so only the output of"
        " the last product is a part of a sum."
    ),
    (
        "attention backward",
        "many",
    ): (
        "There is more than one call in backward. x enters only once, so call copy_to once, and "
        "compute q, k and v from what it returns."
    ),
    # reductions
    "no table": (
        "Return three collections of axes of the layout, whatever their names are. They are the "
        "axes to sum over in forward, in the gradient of a, and in the gradient of b."
    ),
    "axes of out": (
        "{case}: the output is cut along an axis over which your answer sums it. Its pieces there "
        "are next to each other, so they are not parts of a sum."
    ),
    "forward many": (
        "{case}: your answer sums over an axis along which no cut dimension was summed away, so the"
        " ranks along it do not have parts of a sum."
    ),
    "forward few": (
        "{case}: a cut dimension was summed away, so each rank along its axis has a part of the "
        "sum, and the parts must be added."
    ),
    "own axes": (
        "{case}: {operand} is cut along an axis over which your answer sums its gradient, although "
        "the ranks there have different pieces of it."
    ),
    "twice forward": "{case}: an axis appears twice, so the product is summed over it twice.",
    "twice": (
        "{case}: an axis appears twice for {operand}, so its gradient is summed over it twice."
    ),
    "neither": (
        "{case}: along an axis where neither operand is cut, all ranks compute the same, so summing"
        " the gradient of {operand} there multiplies it."
    ),
    "summed away": (
        "{case}: each rank uses {operand} for its own piece of the other operand, even where the "
        "cut dimension is summed away in forward, so its gradient is part of a sum."
    ),
    "backward few": (
        "{case}: along an axis on which only the other operand is cut, each rank has a part of the "
        "gradient of {operand}, and the parts must be added."
    ),
    "layout accepted": (
        "{case}: two dimensions of the product are on one axis, so ranks would compute only blocks "
        "of a diagonal. Raise a ValueError, and look at all dimensions that a or b has."
    ),
    "layout other error": (
        "{case}: two dimensions of the product are on one axis. Say so in a ValueError."
    ),
    "refused": (
        "{case}: no two dimensions of this product are on one axis, so accept the layout. What it "
        "says about other dimensions does not matter here."
    ),
    # price
    "no pairs": "Return a list of pairs (axis, numbers).",
    "forward only": (
        "{case}: these are the all-reduces of forward only, although backward sums, too."
    ),
    "backward only": (
        "{case}: these are the all-reduces of backward only, although forward sums, too."
    ),
    "no outputs backward": (
        "{case}: backward also sums the gradient of an output that enters the next product, along "
        "an axis on which only the weight is cut there."
    ),
    "one rank": "{case}: an axis with one rank needs no all-reduce.",
    "data": (
        "{case}: the gradient of the data, the first operand of the first product, is not needed."
    ),
    "axes other": (
        "{case}: the ledger sees different all-reduces. For each product, count the sums of its "
        "output in forward, and of the gradient of each operand that needs one."
    ),
    "whole": "{case}: these are the numbers of whole tensors, but a rank sums only its piece.",
    "numbers other": (
        "{case}: the ledger sees all-reduces of different sizes. Forward sums the output's piece, "
        "whereas backward sums the piece of the operand whose gradient it is."
    ),
    # choose
    "no layout": (
        "Return a dictionary {{dimension: axis}} with the program's dimensions and the mesh's axes."
    ),
    "on one axis": (
        "{layout}: two dimensions of one product are on one axis, which `reductions` refuses."
    ),
    "does not divide": (
        "{layout} on {mesh}: a size cannot be divided by the number of ranks along its axis. The "
        "sizes are {sizes}."
    ),
    "weights too large": (
        "{layout}: the weights do not fit with their gradients and Adam's two numbers."
    ),
    "too large": (
        "{layout}: the weights fit, but not with the data and the outputs of the products."
    ),
    "dearer": "{layout}: {best} fits too, and sends fewer bytes.",
    "none fits": (
        "It seems that choose found no layout that fits, although for each job some layout fits. Is"
        " the limit checked too strictly?"
    ),
    "thought no activations": (
        "It seems that only the weights were counted, although a rank also holds the data and the "
        "output of each product."
    ),
    "thought no data": (
        "It seems that the data, the first operand of the first product, was not counted."
    ),
    "thought no last output": (
        "It seems that the last output was not counted, although a rank holds the output of each "
        "product."
    ),
    "thought three copies": (
        "It seems that the weights were counted three times instead of four. A rank holds the "
        "weight, its gradient and Adam's two numbers."
    ),
    "thought one copy": (
        "It seems that the weights were counted once instead of four times. A rank holds the "
        "weight, its gradient and Adam's two numbers."
    ),
    "thought numbers": (
        "It seems that numbers were taken for bytes, although each of them has 4 bytes."
    ),
    "thought no ring": (
        "It seems that each number counts once, however many ranks there are, although a ring over "
        "p ranks sends 2 (p - 1) / p times the numbers."
    ),
    "thought to each other": (
        "It seems that each rank sends its numbers to every other rank, whereas a ring sends 2 (p -"
        " 1) / p times the numbers."
    ),
    "thought forward only": (
        "It seems that only the all-reduces of forward were counted, although a step goes backward,"
        " too."
    ),
    "thought odd batch": "It seems that a layout was chosen whose sizes cannot be divided.",
    "thought odd weight": "It seems that a layout was chosen whose sizes cannot be divided.",
    "thought axis once": (
        "It seems that each axis was used for only one dimension, although two dimensions may be on"
        " one axis where no product has both."
    ),
    "thought every axis": (
        "It seems that every axis was used, although an axis may be left without a dimension."
    ),
    "thought exactly": (
        'A layout that needs exactly memory_bytes fits, too, because the limit is "at most".'
    ),
    "thought four dimensions": (
        "It seems that only four dimensions were considered, although a program may have more."
    ),
    "thought just over": "A layout that needs a little more than memory_bytes does not fit.",
    "unfit": "A layout that is not possible or does not fit is never the cheapest.",
}

HINTS: Hints = {  # {name: (where to look, which property the right code has)}
    "15-f-and-g": (
        (
            "Each function does something in one direction only. What all_reduce writes into must "
            "be a separate tensor, because x in forward and the gradient in backward belong to "
            "other code. Is the group kept in ctx?"
        ),
        (
            "Each class sends in one direction only, and in the other one it passes on what it "
            "gets. What all_reduce writes into must be contiguous and must belong to you. However, "
            "a clone can keep the order of the memory that it is made from, so look at its "
            "argument memory_format. In forward, autograd wants a new tensor even if nothing is "
            "computed, and a view is enough. In addition, backward returns a value for every "
            "argument of forward."
        ),
    ),
    "15-column": (
        (
            "Forward needs nothing from other ranks. In backward, x gets a gradient from each "
            "rank's columns, whereas a single process has the sum of these gradients. Which of "
            "your two functions does nothing in forward and sums in backward?"
        ),
        (
            "Without it, the output is right, but the gradient of x contains one rank's columns "
            "only. It belongs where x enters, and it must know the group. Since w and b are cut, "
            "their gradients are complete."
        ),
    ),
    "15-row": (
        (
            "x @ w is a part of the sum for every number of the output. What would become of a bias"
            " that each rank adds before the sum?"
        ),
        (
            "Compute the product first, sum it with one of your two functions, and only then think "
            "of the bias. Its gradient is complete on every rank, so it needs no function."
        ),
    ),
    "15-mlp": (
        (
            "column gives this rank's columns, tanh treats each number separately, and row needs "
            "exactly these columns."
        ),
        (
            "Only `column` and `row` send anything here. The first tanh is between them, whereas "
            "the second one needs the complete sum with its bias. If you see three all-reduces, "
            "one of them is between the layers."
        ),
    ),
    "15-attention": (
        (
            "Make the heads a separate axis. For example, qkv.unflatten(1, (3, heads, -1)) is "
            "[width, 3, heads, size of a head]. Which of these axes is cut, and which one of "
            "out.unflatten(0, (heads, -1))? In attention, call copy_to once, so that one product "
            "gives q, k and v of heads / ranks heads. The last product is like the product in row."
        ),
        (
            "Write down the shape after each line. In `cut_heads`, one slice along the heads is "
            "enough if the heads are an axis. The pieces need the layout of the whole and separate "
            "memory. In `attention`, the mask belongs before the softmax, and the size of one head "
            "decides the scale. The heads must be merged again in the order in which `out` has its "
            "rows. x enters the cut part at one place, and the output leaves it at one place. "
            "Which of your two functions belongs to each of them?"
        ),
    ),
    "15-reductions": (
        (
            "Write a helper that returns the axes along which some dimensions are cut. For forward,"
            " which axes did the operands have that the output no longer has? For backward, where "
            "does one rank use the whole of an operand for a piece of the other one?"
        ),
        (
            "Sums run over axes, so translate dimensions into axes first, and compare sets of axes."
            " For the gradient of an operand, ask which axes cut only the other one of the two. A "
            "layout is impossible if two dimensions of the product share an axis, which you can "
            "see by comparing two counts. A dimension that is in no layout must not disturb either "
            "of them."
        ),
    ),
    "15-price": (
        (
            "For each product, call `reductions`. What is summed in forward has the output's "
            "dimensions, whereas what is summed in backward has the operand's dimensions. How many "
            "numbers does a rank's piece have?"
        ),
        (
            "For one product, compare your list with the ledger's before you try two products. A "
            "piece is smaller than the tensor only in the dimensions that are cut, each by the "
            "size of its axis. The gradient of the data is not needed. Which sum is needed on an "
            "axis of the mesh that has a single rank?"
        ),
    ),
    "15-choose": (
        (
            "itertools.product([None, *mesh], repeat=len(sizes)) goes through all layouts. Leave "
            "out layouts that are too large, that `reductions` refuses, or whose sizes cannot be "
            "divided."
        ),
        (
            "Check the two quantities by hand for a layout that cuts nothing. The memory holds the "
            "weights with all that belongs to them, the data once, and the output of every "
            "product, in bytes. What is sent is the price of each all-reduce, which depends on the "
            "size of its axis as well as on its numbers. A layout that `reductions` refuses is not "
            "a candidate, whereas a layout that needs exactly memory_bytes is one."
        ),
    ),
}

CRITERIA |= vocabulary_messages.CRITERIA
MISTAKES |= vocabulary_messages.MISTAKES
HINTS |= vocabulary_messages.HINTS
