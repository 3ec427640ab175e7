"""The words of unit 15's checks: what each criterion says, the likely mistakes, and the hints. Those of exercise 8 are in `vocabulary_words`."""

from manyhands.checks.tensor_parallel import vocabulary_words

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "f-and-g": {
        "values": (1, "forward: copy_to gives x, reduce_from the sum over the group, and x keeps its numbers; groups "
                      "of 4, 3, 2 ranks and of 1"),
        "gradients": (1, "backward: copy_to sums the gradients, reduce_from hands on the one that comes, and that "
                         "one keeps its numbers"),
        "calls": (1, "one all-reduce in the backward of copy_to, one in the forward of reduce_from, and no other call"),
    },
    "column": {
        "values": (1, "each rank has its own columns of the output of one process"),
        "gradients": (1, "x has the gradient of one process on each rank, w and b the rank's columns of theirs"),
        "calls": (1, "nothing is sent forward, and one all-reduce of the size of x backward"),
    },
    "row": {
        "values": (1, "each rank has the whole output of one process, with the bias in it once"),
        "gradients": (1, "x and w have the rank's part of the gradients of one process, b its whole gradient on each "
                         "rank"),
        "calls": (1, "one all-reduce of the size of the output forward, and nothing is sent backward"),
    },
    "mlp": {
        "values": (1, "the output is that of one process: tanh after each layer, and so after the sum"),
        "gradients": (1, "all gradients are those of one process, or the rank's part of them"),
        "calls": (1, "one all-reduce forward, one backward, and nothing between the two layers"),
    },
    "attention": {
        "pieces": (1, "cut_heads returns copies of the q, k and v columns of the rank's own heads, and of the rows of "
                      "`out` that belong to these heads"),
        "refused": (1, "cut_heads raises a ValueError if the ranks cannot have equally many heads"),
        "values": (1, "on each rank, the output is what one process with all heads computes, with a causal mask"),
        "gradients": (1, "on each rank, x has the gradient of one process, and the rank's pieces of qkv and out have their parts of it"),
        "calls": (1, "one all-reduce in forward, one in backward, and no other message"),
    },
    "reductions": {
        "forward": (1, "products are those of one process, under all layouts"),
        "backward": (2, "the gradients of both operands are those of one process"),
        "refused": (1, "two dimensions of a product on one axis are refused with a ValueError, other layouts are not"),
    },
    "price": {
        "axes": (1, "as many all-reduces over each axis as the ledger sees, forward and backward"),
        "numbers": (1, "and each of as many numbers"),
    },
    "choose": {
        "fits": (1, "each layout is possible, and fits into the memory of a rank"),
        "cheapest": (1, "of all layouts that fit it sends the fewest bytes"),
    },
}

PLACES = {"copy": "copy_to", "again": "copy_to", "sum": "reduce_from", "copy x": "copy_to",
          "qkv": "The piece of qkv", "out": "The piece of out"}

_OUTSIDE = "Call your functions copy_to and reduce_from where a tensor enters or leaves the cut part."
_ON_EACH = "The bias is in the output {size} times, as every rank adds it before the sum. Add it once, after the sum."
_COPY = ("x has only the gradient that came through this rank's part of the weights. Where does x enter the cut "
         "part? copy_to sums it in backward.")
_TIMES = "The gradient of {name} is {size} times too large: it is summed over ranks that all have the whole of it."
_STRIDES = ("{what}: the numbers lie in another order in memory on one rank than on the others. clone() keeps their "
            "order, and all_reduce adds up memory as it lies. Hand it a contiguous copy.")
_MEAN = "This is the mean over the ranks. Each has a part of a sum."
_OWN_G = "This is what this rank alone has. The sum over the ranks is missing: reduce_from."

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "this is the package's own answer": "The package has these functions, too. Here you write your own.",
        "Trying to backward through the graph a second time": "Backward of a graph that is used up: is a tensor kept "
                                                              "from an earlier call?",
        "returned an incorrect number of gradients": "backward returns a gradient for each argument of forward after "
                                                     "ctx, and None for what is no tensor.",
        "a leaf Variable that requires grad is being used in an in-place operation":
            "all_reduce would write into x itself, which is somebody else's: reduce a copy.",
        "is not part of group": "Ranks are counted inside the group: dist.get_rank(group), dist.get_world_size(group).",
    },
    "hangs": "Ranks wait for each other. The checks use small groups too: is `group` given to every call of "
             "torch.distributed, and to copy_to and reduce_from?",
    # all layers
    "nothing": "{what} returned nothing.",
    "no tensor": "{what} returned no tensor.",
    "dtype": "{what} gives another dtype: numbers stay float64.",
    "shape": "{what} has the wrong shape.",
    "not finite": "{what} gives numbers that are not finite.",
    "rounded": "{what} gives the right numbers with too few digits: is something on the way no float64?",
    "other": "{what} does not give what one process gives.",
    "late": "{what} returns before its all-reduce has ended. Wait for what is called with async_op=True.",
    "touched": "{what} has changed {name} itself, which is not its own: others still need it. all_reduce writes into "
               "its tensor, so give it a copy.",
    "gradient touched": "backward has changed the gradient that came in. It is not its own: x + layer(x) hands the "
                        "same one to both. Give all_reduce a copy.",
    "detached": "The output has no gradient function. What dist.all_reduce has written stands outside the graph: it "
                "belongs into the forward of an autograd.Function, whose backward you write. " + _OUTSIDE,
    "no backward": "Backward was not run, because the output has not the right shape.",
    "gradient nothing": "{name} has no gradient on this rank.",
    "gradient own": _COPY,
    "gradient times": _TIMES,
    "gradient divided": "The gradient of {name} is {size} times too small: is a mean taken where a sum is wanted?",
    "gradient nothing summed": "The gradient of {name} is zero on this rank.",
    "gradient shape": "The gradient of {name} has the wrong shape.",
    "gradient dtype": "The gradient of {name} has another dtype.",
    "gradient not finite": "The gradient of {name} is not finite.",
    "gradient rounded": "The gradient of {name} has too few right digits: is something on the way no float64?",
    "gradient other": "The gradient of {name} is not that of one process.",
    "many": "More is called in {way} than is needed: one all-reduce at most.",
    "few": "There is no all-reduce in {way}.",
    "bytes": "The number of calls in {way} is right, the bytes are too many: it is to be one all_reduce (an all_gather sends more), of "
             "the smallest tensor that does.",
    "fewer bytes": "The number of calls in {way} is right, the bytes are too few: is it another tensor, or one of shorter numbers (float32)?",
    # f and g
    ("copy", "times"): "copy_to sums in forward. All ranks have the same x there, and forward gives it back as it is.",
    ("sum", "own"): "reduce_from gives x back. Its forward is the sum over the group.",
    ("sum", "mean"): "reduce_from gives the mean. What the ranks have are parts of a sum.",
    ("copy x", "own"): "copy_to does nothing in backward. Each rank's gradient is only what came through its own "
                       "part of the weights: sum them, and wait for it.",
    ("copy x", "mean"): "copy_to takes the mean in backward. Each rank's gradient is a part of the whole one: sum "
                        "them.",
    ("copy x", "times"): "copy_to sums its gradients twice.",
    ("copy x", "strides"): _STRIDES, ("sum", "strides"): _STRIDES,
    ("again x", "own"): "copy_to was called for another group between forward and backward, and backward took that "
                        "one. ctx belongs to one call: keep the group there.",
    ("sum x", "times"): "reduce_from sums its gradients in backward. Every rank computes the same loss from the same "
                        "output, so each has the whole gradient already: hand it on as it is.",
    ("sum x", "divided"): "reduce_from divides its gradient. The sum has slope 1 in each rank's x.",
    ("copy forward", "many"): "copy_to needs no call in forward: every rank has x already.",
    ("sum backward", "many"): "reduce_from needs no call in backward: every rank has the gradient of the sum already.",
    # column
    ("column", "whole"): "This is the whole output. Each rank keeps its own columns: the next layer wants no more.",
    ("column", "summed"): "This is the sum of the ranks' outputs. They are columns of one matrix, beside each other, "
                          "and nothing is to be added up.",
    ("column", "x summed"): "x is summed over the ranks. All of them have the same x already.",
    ("column", "no bias"): "The bias is missing: b holds the numbers of this rank's columns.",
    ("column forward", "many"): "Nothing has to be sent in forward: x is there, and each rank keeps its own columns.",
    ("column backward", "many"): "More than one call in backward. Only x, which all ranks have, needs a sum: w and b "
                                 "are this rank's own.",
    ("column backward", "few"): "There is no all-reduce in backward. Each rank's columns give x only a part of its "
                                "gradient.",
    # row
    ("row", "bias on each"): _ON_EACH, ("mlp", "bias on each"): _ON_EACH,
    ("row", "no bias"): "The bias is missing.", ("mlp", "no bias"): "The second bias is missing.",
    ("row", "own"): _OWN_G, ("row", "own and bias"): _OWN_G, ("mlp", "own and bias"): _OWN_G,
    ("row", "mean"): _MEAN, ("row", "mean of all"): _MEAN, ("attention", "mean"): _MEAN,
    ("row b", "nothing"): "b has no gradient on this rank. Every rank holds b and trains it, so every rank adds it, "
                          "after the sum.",
    ("row b", "nothing summed"): "b has a gradient of zero on this rank. Every rank holds b and trains it: every "
                               "rank adds it, after the sum.",
    ("row b", "divided"): "The gradient of b is {size} times too small. Every rank holds b and trains it: every rank "
                          "adds the whole of it, after the sum.",
    ("row backward", "many"): "Nothing has to be sent in backward: each rank has the gradient of the output, and its "
                              "own columns of x are nobody else's.",
    # mlp
    ("mlp", "tanh before the sum"): "The last tanh is taken of each rank's part, before the sum. The tanh of a sum "
                                    "is not the sum of tanhs: sum, then bias, then tanh.",
    ("mlp", "tanh and bias before the sum"): "Bias and tanh come before the sum. The tanh of a sum is not the sum of "
                                             "tanhs: sum, then bias, then tanh.",
    ("mlp", "no tanh at the end"): "The tanh after the second layer is missing.",
    ("mlp", "no tanh between"): "The tanh between the layers is missing.",
    ("mlp down_bias", "nothing"): "The second bias has no gradient on this rank. Every rank holds it and trains it: "
                                  "every rank adds it, after the sum.",
    ("mlp forward", "many"): "More than one call in forward. tanh treats each number by itself, and the rows of "
                             "`down` on this rank belong to just the columns that `up` has made here: nothing has to "
                             "be sent between the layers.",
    ("mlp backward", "many"): "More than one call in backward: only x needs a sum.",
    # heads
    ("qkv", "one block"): "This cuts the columns of qkv as one block, so that the first rank has nothing of v. q, k "
                          "and v stand side by side, and each of the three is to be cut.",
    ("qkv", "whole"): "This is the whole of qkv: no rank may hold it.",
    ("out", "whole"): "This is the whole of `out`: no rank may hold it.",
    ("qkv", "dealt"): "These are the heads {rank}, {rank} + {size}, ... Rank r has heads / size neighbouring ones, "
                      "from r * heads / size on.",
    ("out", "dealt"): "These are the rows of the heads {rank}, {rank} + {size}, ... Rank r has heads / size "
                      "neighbouring ones.",
    ("qkv", "head by head"): "The right columns in another order: first q of all the rank's heads, then k, then v, "
                             "as in the whole.",
    ("qkv", "q alone"): "This has the columns of q only: k and v of the same heads belong to it.",
    ("qkv", "through heads"): "This gives each rank a part of every head. A rank needs whole heads: softmax is over "
                              "the whole product of q and k.",
    ("out", "columns"): "These are columns of `out`. A head's output meets the rows of `out` that belong to it.",
    "a view": "{what} is a view: it keeps {got} numbers in memory, and needs {needed}. A copy of its own (clone) "
              "lets the whole go.",
    "shared": "{what} is the whole itself, or lies in its memory: a step of the optimiser would change that one too. Return a separate copy, also on {size} rank(s) "
              "(clone).",
    "cut in place": "cut_heads has changed {name}, the whole weight, from which other ranks are still cut.",
    "accepted": "{heads} heads on {size} ranks were accepted. Some rank would have a part of a head: raise ValueError.",
    "other error": "{heads} heads on {size} ranks raised {error}. Say what is wrong in a ValueError, before anything "
                   "is cut.",
    # attention
    ("attention", "own"): _OWN_G,
    ("attention", "not causal"): "A place sees places that come after it. The mask hides them: its scores there are "
                                 "-inf before softmax.",
    ("attention", "mask after softmax"): "The mask comes after softmax, so that a place's weights no longer sum to "
                                         "1. The scores of later places are -inf before it.",
    ("attention", "mask of zeros"): "Scores of later places are set to 0, and softmax gives them weight still: "
                                    "exp(0) is 1. Set them to -inf.",
    ("attention", "later only"): "A place sees itself and later places. It is to see itself and those before it.",
    ("attention", "all heads here"): "This cuts the rank's columns into all heads of the layer. Here are heads / "
                                     "ranks of them, each as long as in one process.",
    ("attention", "one later"): "A place sees the place that comes after it. It is to see itself and those before it only: its scores there are -inf "
                                "before softmax.",
    **{("attention", f"heads {n}"): "Here are heads / ranks heads, and this cuts the rank's columns into another number of them. Is a number of heads written "
                                    "down? `heads` and the size of the group say how many." for n in range(1, 65)},
    ("attention", "not scaled"): "The scores are not divided by the root of the size of a head.",
    ("attention", "scaled by width"): "The scores are divided by the root of the width. It is the size of a head "
                                      "that counts.",
    ("attention", "scaled by all"): "The scores are divided by the root of all heads' size together. It is the size "
                                    "of one head that counts.",
    ("attention", "softmax over queries"): "softmax is taken over the places that look. For each of them it is over "
                                           "the places that it sees, the last axis of q @ k.mT.",
    ("attention", "not finite"): "The output has numbers that are not finite: does the mask hide a place from "
                                 "itself, so that nothing is left for softmax?",
    ("attention forward", "many"): "More than one call in forward. Each rank's heads are whole: only the output of "
                                   "the last product is a part of a sum.",
    ("attention backward", "many"): "More than one call in backward. x enters once: copy_to is called once, and q, k "
                                    "and v come from what it gives.",
    # reductions
    "no table": "Asked for are three collections of axes of the layout, by whatever names it has: to sum over forward, in the "
                "gradient of a, in the gradient of b.",
    "axes of out": "{case}: the output is cut along an axis over which it is to be summed. Its pieces there are "
                   "beside each other, not parts of a sum.",
    "forward many": "{case}: no cut dimension was summed away along this axis, so the ranks along it do not have "
                    "parts of a sum.",
    "forward few": "{case}: a cut dimension was summed away, so each rank along its axis has a part of the sum.",
    "own axes": "{case}: {operand} is cut along an axis over which its gradient is to be summed. The ranks there "
                "have different pieces of it.",
    "twice forward": "{case}: an axis comes twice, so the product is summed twice over it.",
    "twice": "{case}: an axis comes twice for {operand}, so its gradient is summed twice over it.",
    "neither": "{case}: along an axis where neither operand is cut, all ranks compute the same. To sum {operand}'s "
               "gradient there multiplies it.",
    "summed away": "{case}: each rank uses {operand} for its own piece of the other operand, also where the "
                   "dimension that is cut is summed away forward: its gradient is a part of a sum there.",
    "backward few": "{case}: along an axis on which only the other operand is cut, each rank has a part of the "
                    "gradient of {operand}.",
    "layout accepted": "{case}: two dimensions of the product lie on one axis, so ranks would compute blocks of a "
                       "diagonal only. Raise ValueError. Look at all dimensions that a or b has.",
    "layout other error": "{case}: two dimensions of the product lie on one axis. Say so in a ValueError.",
    "refused": "{case}: no two dimensions of this product lie on one axis. What the layout says of other dimensions "
               "does not matter here.",
    # price
    "no pairs": "Asked for is a list of pairs (axis, numbers).",
    "forward only": "{case}: these are the all-reduces of forward only.",
    "backward only": "{case}: these are the all-reduces of backward only.",
    "no outputs backward": "{case}: backward also sums the gradient of an output that goes into the next product, "
                           "where only the weight there is cut.",
    "one rank": "{case}: an axis with one rank needs no all-reduce.",
    "data": "{case}: nobody needs the gradient of the data, the first operand of the first product.",
    "axes other": "{case}: the ledger sees other all-reduces. For each product: its output forward, and the gradient "
                  "of each operand that needs one.",
    "whole": "{case}: these are the numbers of whole tensors. A rank sums its piece.",
    "numbers other": "{case}: the ledger sees all-reduces of other sizes. Forward the output's piece is summed, "
                     "backward that of the operand whose gradient it is.",
    # choose
    "no layout": "Asked for is a dictionary {{dimension: axis}} with the program's dimensions and the mesh's axes.",
    "on one axis": "{layout}: two dimensions of one product lie on one axis, which `reductions` refuses.",
    "does not divide": "{layout} on {mesh}: a dimension does not divide by the ranks of its axis. Sizes: {sizes}.",
    "weights too large": "{layout}: the weights with their gradients and Adam's two numbers do not fit.",
    "too large": "{layout}: the weights fit, but not with the data and the outputs of the products.",
    "dearer": "{layout}: {best} fits too, and sends fewer bytes.",
    "none fits": "It seems to have found no layout that fits. For each job some layout fits: is the limit checked too strictly?",
    "thought no activations": "It seems that only the weights were counted: a rank holds the data and the output of each product, too.",
    "thought no data": "It seems that the data, the first operand of the first product, was not counted.",
    "thought no last output": "It seems that the last output was not counted: a rank holds the output of each product.",
    "thought three copies": "It seems that the weights were counted three times: a rank holds the weight, its gradient and Adam's two numbers.",
    "thought one copy": "It seems that the weights were counted once: a rank holds the weight, its gradient and Adam's two numbers.",
    "thought numbers": "It seems that numbers were taken for bytes: each of them has 4 bytes.",
    "thought no ring": "It seems that each number counts once, however many ranks there are: over p ranks a ring sends 2 (p - 1) / p times the numbers.",
    "thought to each other": "It seems that each rank sends its numbers to each other one: a ring sends 2 (p - 1) / p times the numbers.",
    "thought forward only": "It seems that only the all-reduces of forward were counted: a step goes backward too.",
    "thought odd batch": "It seems that a layout was taken whose sizes do not divide.",
    "thought odd weight": "It seems that a layout was taken whose sizes do not divide.",
    "thought axis once": "It seems that each axis was used for one dimension only. Two dimensions may lie on one axis where no product has both.",
    "thought every axis": "It seems that every axis was used. One may be left without a dimension.",
    "thought exactly": "A layout that needs exactly memory_bytes fits, too: \"at most\".",
    "thought four dimensions": "It seems that only four dimensions were thought of. A program may have more.",
    "thought just over": "A layout that needs a little more than memory_bytes does not fit.",
    "unfit": "A layout that is not possible or does not fit is never the cheapest.",
}

HINTS = {  # {name: (where to look, which property the right code has)}
    "15-f-and-g": (
        "Each function does something in one direction only. What all_reduce writes into must be a tensor of your "
        "own: x in forward, and the gradient in backward, belong to others. Is the group kept in ctx?",
        "Each class sends in one direction only, and in the other one it passes on what it gets. What all_reduce "
        "writes into must be contiguous and must belong to you: a clone can keep the order of the memory that it is "
        "made from, so look at its argument memory_format. In forward, autograd wants a new tensor even if nothing is "
        "computed; a view is enough. And backward returns a value for every argument of forward.",
    ),
    "15-column": (
        "Forward needs nothing from others. In backward x gets a gradient from each rank's columns; one process has "
        "the sum of them. Which of your two functions does nothing forward, and sums backward?",
        "Without it, the output is right and the gradient of x contains one rank's columns only. It belongs where x enters, and it must know the group; w and b are cut, so their gradients are complete.",
    ),
    "15-row": (
        "x @ w is a part of the sum for every number of the output. What would become of a bias that each rank adds "
        "before the sum?",
        "Compute the product first, sum it with one of your two functions, and only then think of the bias. Its gradient is complete on every rank, so it needs no function.",
    ),
    "15-mlp": (
        "column gives this rank's columns, tanh treats each number by itself, and row asks for just these columns.",
        "Only `column` and `row` send anything here. The first tanh comes between them, and the second one needs the complete sum with its bias. If you see three all-reduces, one of them is between the layers.",
    ),
    "15-attention": (
        "Make the heads an axis of their own: qkv.unflatten(1, (3, heads, -1)) is [width, 3, heads, size of a head]. "
        "Which axis is cut? And out.unflatten(0, (heads, -1))? For attention: copy_to once, then one product gives "
        "q, k and v of heads / ranks heads; the last product is like that of row.",
        "Write down the shape after each line. In `cut_heads`, one slice along the heads is enough, if the heads are "
        "an axis; the pieces need the layout of the whole and their own memory. In `attention`, the mask belongs "
        "before the softmax, and the scale is decided by the size of one head. The heads must be merged again in the "
        "order in which `out` has its rows. x enters the cut part at one place, and the output leaves it at one "
        "place: which of your two functions belongs to each?",
    ),
    "15-reductions": (
        "Write a helper that gives the axes on which some dimensions lie. Forward: which axes had the operands, and "
        "the output has no more? Backward: where does one rank use the whole of an operand for a piece of the other "
        "one?",
        "Sums run over axes, so translate dimensions into axes first, and compare sets of axes. For the gradient of "
        "an operand, ask which axes cut only the other one of the two. A layout is impossible if two dimensions of "
        "the product share an axis: compare two counts. A dimension that is in no layout must not disturb either of "
        "them.",
    ),
    "15-price": (
        "For each product ask `reductions`. What is summed forward has the output's dimensions, what is summed "
        "backward those of the operand. How many numbers has a rank's piece?",
        "For one product, compare your list with the ledger's before you try two products. A piece is smaller than "
        "the tensor only in the dimensions that are cut, each by the size of its own axis. Nobody needs the gradient "
        "of the data. And what happens on an axis of the mesh that has a single rank?",
    ),
    "15-choose": (
        "itertools.product([None, *mesh], repeat=len(sizes)) goes through all layouts. Leave out those whose sizes "
        "do not divide, those that `reductions` refuses, and those that are too large.",
        "Check the two quantities by hand for a layout that cuts nothing. The memory holds weights with all that "
        "belongs to them, the data once, and the output of every product, in bytes. What is sent is the price of each "
        "all-reduce, and it depends on the size of its axis as well as on its numbers. A layout that `reductions` "
        "refuses is no candidate, and a layout that needs exactly memory_bytes is one.",
    ),
}

CRITERIA |= vocabulary_words.CRITERIA
MISTAKES |= vocabulary_words.MISTAKES
HINTS |= vocabulary_words.HINTS
