"""The words of unit 16's checks: what each criterion says, the likely mistakes, and the hints."""

MASTER_STEPS = 15  # of the experiment with master weights

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "memory": {
        "kept": (1, "the bytes on a rank in stages 0 and 1, with padding where there are shards"),
        "work": (1, "the same in stages 2 and 3, with the layer at work on top"),
        "most": (1, "as many layers as fit into a device, and not one more"),
    },
    "shards": {
        "cut": (1, "shard: equal shards with zeros at the end, for any size and number of ranks, in memory of their own"),
        "whole": (1, "unshard: the whole tensor in its shape and type, with the bytes of one all-gather"),
        "mean": (1, "reduce_shard: the shard of the mean over the ranks"),
        "traffic": (1, "reduce_shard sends no more than one reduce-scatter does"),
    },
    "zero1": {
        "weights": (2, "after each of three steps all ranks have the weights of one process"),
        "states": (1, "a rank keeps states of its shard only"),
        "traffic": (1, "gradients travel once, and new weights once"),
    },
    "zero2": {
        "shards": (2, "the shards of the mean gradients, in order, also at the second call"),
        "freed": (1, "afterwards no parameter has a gradient, and no hook is left"),
        "alive": (1, "while backward runs two whole gradients at most are in memory, afterwards none; each is sent by one reduce-scatter"),
    },
    "gather": {
        "values": (1, "forward computes what a layer with its whole weight computes"),
        "gradients": (1, "the gradients of x and of the shard are right"),
        "traffic": (1, "one all-gather forward; one all-gather and one reduce-scatter backward"),
        "freed": (1, "between forward and backward the weight is not in memory"),
    },
    "masters": {
        "moves": (1, f"small steps add up in float32: after {MASTER_STEPS} of them the master is right, and the weights, in place, are the master, rounded"),
        "states": (1, "a rank keeps one number of float32 for each parameter of its shard"),
        "traffic": (1, "gradients travel once, in four bytes each at most, and new weights once, in two"),
    },
    "clip": {
        "norm": (1, "every rank has the norm of all numbers, and of nothing else"),
        "clipped": (1, "shards are clipped in place where the norm is too large, and only there"),
        "traffic": (1, "one all-reduce of one number"),
    },
    "training": {
        "start": (1, "before the first step, the shards of all ranks make the network of one process"),
        "steps": (2, "after 1 and 3 steps, they make the weights of one process, and each step scatters its gradients once; meshes of 4 ranks and of 2"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "output tensor size must be equal to world_size times input tensor size": "all_gather_single fills a vector that is as long as all shards together, padding too.",
        "input tensor must be the same size as output size times world size": "reduce_scatter_single takes the padded vector: as long as all shards together.",
        "a leaf Variable that requires grad is being used in an in-place operation": "A parameter is changed in place outside the graph: of p.detach(), or inside torch.no_grad().",
        "object has no attribute 'ctx'": "Forward and backward of a torch.autograd.Function are static: what backward needs is kept in ctx.",
        "returned an incorrect number of gradients": "backward returns a gradient, or None, for each of x, own, shape and group: four.",
        "'NoneType' object has no attribute": "Something is None that should be a tensor. If it is p.grad in a hook: is a hook left from an earlier call, which has cut this gradient already?",
        "mat1 and mat2 shapes cannot be multiplied": "Shapes do not fit: forward is x @ weight.T; backward is gradient @ weight for x, gradient.T @ x for the weight.",
        "tuple index out of range": "A shard is asked for that does not exist. Shards are counted inside the group: the rank is dist.get_rank(group), not dist.get_rank(), which counts in the world.",
        "invalid tensor size": "The ranks that meet in this collective hand over tensors of different lengths. Is `group` handed to every collective?",
        "got a mixture of": "Types are mixed: what a collective fills and what it takes have one type.",
        "Only one ProcessGroup": "All of a group call it with the same group.",
    },
    "hangs": "Ranks wait for each other. Is `group` handed to every collective, and do all its ranks call the same ones in the same order?",
    # memory
    "not whole": "Asked for is a whole number: of layers there are no parts.",
    "no padding": "This is without padding: a shard has ceil(n / ranks) numbers, of each layer for itself.",
    "cut down": "The division is rounded down: the last parameters have no place. Round up.",
    "one vector": "This pads all layers as one vector. Each layer is a vector of its own, with padding of its own.",
    "work without padding": "The layer at work is counted without padding. The collectives take it padded: as long as all its shards together.",
    "no work": "The layer at work is missing: it is there whole for a moment, on top of the shards.",
    "all at work": "This has all layers whole at once. Only one is at work at a time: count the largest.",
    "work of all layers": "This has all layers whole at once. Only one is at work at a time: count the largest, padded.",
    "no gradient at work": "At work there is a whole gradient too, before it is cut into shards.",
    "instead of": "The layer at work comes on top: its shard is there besides the whole.",
    "one stage late": "This shards each thing one stage too late: states from stage 1 on, gradients from 2, weights from 3.",
    "gradients early": "The gradients are whole on each rank in stage 1: they are sharded from stage 2 on.",
    "stage 0": "This is what stage 0 needs: nothing is sharded.",
    "memory other": "Count for each layer what is whole and what is a shard, then add the largest layer at work.",
    "every layer at work": "The layer at work is there once, not once for each layer: take it off the device before you divide.",
    "nothing at work": "The layer at work needs its place too, with its padding.",
    "one too many": "That is one layer too many: it does not fit.",
    "one too few": "One more layer fits. Something that is just as large as the device fits.",
    "below none": "Fewer than no layer: where not even one fits, the answer is 0.",
    "most other": "How many bytes does each further layer add? What is left of the device for them, once the layer at work has its place?",
    # shards
    "no tensor": "There is no tensor here.",
    "length": "The shard has {got} numbers, not {expected}: all shards are equally long, ceil(n / ranks), padded with zeros at the end.",
    "short": "This has {got} numbers, and {expected} are wanted: the padding is missing, and ranks would differ. All shards are equally long.",
    "shape": "The shape is {got}, not {expected}.",
    "type": "The type of the numbers is {got}, not {expected}: it is that of the argument.",
    "not flat": "A shard is flat: it has one dimension.",
    "padding in front": "The padding stands at the wrong end: the zeros come behind the numbers.",
    "padding": "The numbers are right, what stands in the padding is not: zeros.",
    "every other": "This takes every {ranks}-th number. A shard is a piece of neighbours.",
    "other shard": "This is the shard of another rank.",
    "a view": "The shard is a view: its memory has {got} numbers, and the whole tensor stays alive as long as the shard does. Copy it: clone().",
    "shares": "The shard changes when the tensor does: copy it, clone().",
    "not finite": "There are numbers that are not finite.",
    "summed": "This is the sum over the ranks. Asked for is the mean.",
    "own": "This is of the own rank's tensor alone: the other ranks' are missing.",
    "divided twice": "This is the mean, divided by the number of ranks once more.",
    "order of ranks": "The shards are put together in a wrong order.",
    "other": "These are not the right numbers.",
    "rounded": "These are nearly the right numbers: they were rounded on the way. Keep the type of the argument.",
    "sent whole": "It sent {got} bytes; {expected} are enough. An all-reduce gives the whole vector to each rank: reduce-scatter gives each its shard, with half the bytes.",
    "sent": "It sent {got} bytes; {expected} are enough. Does something travel more than once, more of it than the shards, or in a wider type?",
    # zero1
    "weights summed": "These are the weights of a sum of gradients. Adam gets the mean: only eps shows the difference, so it is small.",
    "weights own": "These are the weights of one rank's own gradients: the ranks' gradients have not become one mean.",
    "stale": "These are the weights before the last step: the shards were gathered before Adam had changed them.",
    "unmoved": "Nothing has moved: are the new shards gathered, and written into the parameters in place?",
    "shard only": "Only this rank's shard is new, the rest is as it was: gather the shards of all ranks.",
    "begun anew": "This is Adam without a memory: its two numbers began anew at each step. Keep them in `state`.",
    "counted parameters": "Adam's count of steps goes up with each parameter. It counts steps: 1, 2, 3.",
    "eps default": "eps is not the one that was given.",
    "not of one process": "These are not the weights of one process.",
    "parameters replaced": "A parameter has another memory than before: write into it in place, so that whoever holds it sees the new weights.",
    "states whole": "`state` holds {got} numbers. Of the shard's parameters at most three each are needed, which is {expected}: the states of the other shards "
                    "belong to the other ranks.",
    "kept beside state": "The steps have left {got} numbers in memory, where {expected} are needed: something besides `state`, a global list for example, keeps tensors that are no longer used.",
    "states none": "There are no two numbers for each parameter of the shard in `state`: what Adam must remember is kept there.",
    # zero2
    "no list": "Asked for is a list with a shard for each parameter: {expected} of them.",
    "left": "{got} parameters still have a gradient afterwards: p.grad = None in the hook frees it.",
    "hooks left": "{got} hooks are left: each later backward would run them too. Remove them when backward has ended.",
    "no backward": "Of {expected} parameters {got} had their gradient from loss.backward(). Run it, and let hooks cut each gradient while it runs.",
    "piled up": "There were {got} whole gradients in memory while backward was running; {expected} are allowed. Cut each in its hook and free it there. What else keeps one alive: a list?",
    "piled up copies": "While backward was running, {got} numbers that were created meanwhile were in memory at once; two whole gradients, the shards and what backward itself needs are "
                       "{expected} at most. A copy of a gradient is as large as the gradient: cut each in its hook, and keep no copy (clone(), one long vector) of it.",
    "copies kept": "Afterwards {got} numbers besides the shards are still in memory that were created while backward ran; {expected} are allowed. Does a list or a global keep copies of "
                   "gradients?",
    "views of copies": "The shards have {expected} numbers, the memory that they keep alive {got}: a slice of a padded or copied gradient keeps all of it. clone() the slice.",
    "views": "{got} whole gradients are still in memory afterwards: are the shards views of them? A shard has memory of its own.",
    "order of parameters": "The shards are in another order than the parameters: that of backward? Each belongs where its parameter stands in the list.",
    "last parameter": "Only the last parameter's place is filled: a function that is made in a loop sees the loop's last value. Give it its own: functools.partial.",
    "second call": "The first call was right, the second one was not: are hooks left from the first? Remove them.",
    # gather
    "x averaged": "The gradient of x is averaged over the ranks. Each rank has rows of its own: it stays as it is.",
    "x summed": "The gradient of x is summed over the ranks. Each rank has rows of its own: it stays as it is.",
    "no gradient": "There is no gradient: does backward return one?",
    "forward sent": "Forward sent {got} bytes; one all-gather sends {expected}.",
    "backward less": "Backward sent {got} bytes; an all-gather and a reduce-scatter send {expected}. If the weight is still there from forward, it was never freed.",
    "backward more": "Backward sent {got} bytes; an all-gather and a reduce-scatter send {expected}.",
    "kept": "Between forward and backward {got} numbers are kept besides x and the shard: as many as the weight has, or more. Keep only what is small, "
            "in ctx, on the class and in globals too, and gather again.",
    "kept after": "After backward {got} numbers are still in memory besides the gradients: as many as the weight has, or more. Let go of the weight when it has been used.",
    # masters
    "became": "The parameters are {got} now. They stay bfloat16.",
    "vanished": "Steps have vanished: {stuck} of {numel} numbers are as they were. A step that is too small for bfloat16 must add up in float32.",
    "rounded sum": "The gradients were added up in bfloat16, where a small one vanishes beside a large one: make them float32 before they travel.",
    "master rounded": "The rounded weights are right, but a number of the master is wrong by {got}; {expected} is what float32 loses. Is the gradient, its mean, the step or lr rounded to "
                      "bfloat16 on the way? After more steps the weights are wrong too: p.grad.float() comes first, and only the new weights are rounded.",
    "no masters": "There is no float32 in `state`: the master shard lives there.",
    "masters more": "`state` holds {got} bytes; the master shard has {expected}: four for each of its parameters, and none for those of the other ranks' shards.",
    "kept beside masters": "The steps have left {got} bytes in memory, and the master shard has {expected}: something besides `state`, a global list for example, keeps tensors that are no "
                           "longer used.",
    "gathered wide": "The new weights travel as {got}: round them before the all-gather, and half the bytes are sent.",
    # clip
    "norm of shard": "This is the norm of this rank's shards alone. Add up the squares of all ranks.",
    "norm of norms": "These are norms that were added. Add the squares, and take the root once, at the end.",
    "norm padded": "What stands in the padding counts in this norm. On rank r only max(0, n - r * k) numbers of a shard of k are real.",
    "norm world rank": "This norm leaves out real numbers, as if the rank in the world were the rank in the group: dist.get_rank(group) counts inside the group.",
    "norm times 0": "This is no number. What stands in the padding may be none either, and 0 times it is none: leave it out.",
    "norm one vector": "This is the norm of one vector. Asked for is that of all of them.",
    "norm averaged": "The squares are averaged over the ranks. Asked for is their sum.",
    "norm squared": "This is the square of the norm.",
    "norm other": "This is not the norm of all numbers.",
    "norm after": "This is the norm after the clipping.",
    "grown": "The norm is smaller than max_norm: nothing is to change. It has been scaled up.",
    "unclipped": "The norm is larger than max_norm, and nothing has been clipped. Change the shards in place.",
    "clipped own": "Each shard was clipped by its own norm: vectors point another way then. One factor for all.",
    "clipped other": "The clipped numbers are not right: all become smaller by max_norm / norm, with the norm of all.",
    "no number": "This is no number.",
    "calls many": "{got} numbers travelled in {calls} collectives. Add up the squares of all vectors first: one number, one all-reduce.",
    "calls none": "No collective: how do the other ranks' squares come here?",
    # training
    "not sharded": "The function returns the network that `fully_shard` has cut: all its parameters are DTensors that are placed with Shard.",
    "four networks": "The shards belong to four different networks, because rank r has cut the network of seed + r. DDP broadcasts the weights when it wraps a network, but `fully_shard` does not.",
    "other start": "With steps = 0, the shards do not make the network that `make()` gives after torch.manual_seed(seed).",
    "first micro-batch only": "The step used the gradients of the first micro-batch only. The gradients of the later ones stay on their rank until the next reduce-scatter, which is in the next step.",
    "stale and clipped own": "The step used the gradients of the first micro-batch only, and each rank clipped its shards by their own norm.",
    "not clipped": "These are the weights without clipping. Gradients whose norm is larger than max_norm are scaled down before the step.",
    "not divided": "The gradients of the micro-batches are added up, but the step is to take their mean: divide each loss by the number of micro-batches.",
    "scattered often": "The weights are right, but {got} numbers were reduce-scattered where {expected} are enough: one reduce-scatter for each step, not for each micro-batch.",
    "scattered never": "The weights are right, but {got} numbers were reduce-scattered where {expected} are needed. Let `fully_shard` average the gradients.",
    "sum of norms": "All shards were clipped by one factor, but it comes from the sum of the norms of the ranks' shards. Add up their squares and take the root of the sum.",
    "norm of the world": "The norm was added up over all ranks of the world. Here the network is cut over two of them, so give `group=mesh.get_group()` to the all-reduce.",
    "mesh ignored": "These are not the weights of one process, although the loop is right on the mesh of all ranks. Take the rank, the number of ranks and the group of each collective from `mesh`, not from the world.",
    "other training": "These are not the weights of one process that takes the same 32 rows in each step, with SGD, a rate of 0.5 and clipping by the norm of all gradients.",
}

HINTS = {  # {name: (where to look or what to compare, the kind of idea that is needed)}
    "16-memory": (
        "Take one layer of 10 parameters on 4 ranks and write down what is kept in each of the four stages: which of the three kinds of numbers is a shard of 3, and which is a vector of 10? Then "
        "add what is whole for a moment.",
        "Dividing upwards gives the length of a shard. The layer at work is a fixed amount that does not depend on how many layers there are, so most_layers is what is left of the device, divided by what each "
        "further layer adds.",
    ),
    "16-shards": (
        "Work on paper with 10 numbers and 4 ranks: how many zeros follow, which numbers belong to rank 3, and what must be cut off after the gather? For the mean, compare what an all-reduce "
        "and a reduce-scatter give to each rank.",
        "Python's % gives a result that is not negative, also for a negative number on its left, which is useful for padding. Each of unshard and reduce_shard needs one empty vector of the right length and one collective "
        "that fills it. What is only a view must be copied.",
    ),
    "16-zero1": (
        "Three things happen in a step, in this order: gradients become shards of their mean, Adam takes its step, and the new shards become whole parameters. Which of your tools does the first "
        "and which the third?",
        "Adam's moments belong to the tensors that it was given. Therefore the same shards, and the same optimiser, must be used in each step, so they are made once and kept in `state`. A whole "
        "parameter that was put together again is copied into the memory of the old one.",
    ),
    "16-zero2": (
        "Run the evidence for both calls and compare three numbers with the number of parameters: the filled places, the gradients that are left, and the reduce-scatters. Each of them has its own cause.",
        "There are three kinds of faults: a function that is defined in a loop does not remember the value that a variable had then, a tensor that is still referred to is not freed, and what is registered "
        "for one backward stays registered for all later ones.",
    ),
    "16-gather": (
        "Compare the three lines of the evidence with the tutorial's Stage 3: what may be kept for backward, what is sent in backward, and whose rows does the gradient of x belong to?",
        "There are two kinds of faults. Something is kept that is as large as the weight, although it could be gathered again. And something is divided as if it were a mean over the ranks, although it belongs to one rank alone.",
    ),
    "16-masters": (
        "Follow one number on its way: the gradient travels, becomes a mean, is multiplied by lr, is subtracted, and the new weight travels. In which type is it at each of these places, and in which type "
        "should it be?",
        "All that is added up or subtracted must be float32 before that happens, and only the finished weight may be rounded. The master is made at the first step and is then changed in place.",
    ),
    "16-clip": (
        "Take a vector of 10 numbers on 4 ranks, and write down for each rank how many numbers of its shard are real. Then think about which quantity may be added over vectors and over ranks.",
        "The number of real entries follows from the size, the rank in the group and the length of the shard, and it is never negative. Squares may be added and roots may not, so there is one root at the very end. "
        "All vectors are scaled by the same factor.",
    ),
    "16-training": (
        "Run the evidence with one step changed at a time. For each of its three lines ask what one process would print, and which statement of the loop is responsible for that line.",
        "There are three kinds of faults: ranks that start apart, although nothing brings them together; a switch that is on for the wrong micro-batch; and a number of one shard that is taken for a number of the whole "
        "network.",
    ),
}
