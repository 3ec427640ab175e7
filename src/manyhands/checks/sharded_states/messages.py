"""The messages of unit 16's checks.

They say what each criterion asks for, the likely mistakes, and the hints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

MASTER_STEPS = 15  # of the experiment with master weights

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "memory": {
        "kept": (
            1,
            "the bytes on a rank are right in stages 0 and 1, with padding where there are shards",
        ),
        "work": (1, "they are also right in stages 2 and 3, where the layer at work is added"),
        "most": (1, "most_layers returns as many layers as fit into a device, and not one more"),
    },
    "shards": {
        "cut": (
            1,
            (
                "shard returns equal shards in separate memory, with zeros at the end, for any size"
                " and number of ranks"
            ),
        ),
        "whole": (
            1,
            (
                "unshard returns the whole tensor in its shape and type, with the bytes of one "
                "all-gather"
            ),
        ),
        "mean": (1, "reduce_shard returns this rank's shard of the mean over the ranks"),
        "traffic": (1, "reduce_shard sends no more than one reduce-scatter does"),
    },
    "zero1": {
        "weights": (
            2,
            "after each of three steps, all ranks have the weights that a single process computes",
        ),
        "states": (1, "a rank keeps only the states of its shard"),
        "traffic": (1, "the gradients are sent once, and the new weights once"),
    },
    "zero2": {
        "shards": (
            2,
            (
                "the shards of the mean gradients are in the order of the parameters, at the second"
                " call too"
            ),
        ),
        "freed": (1, "afterwards, no parameter has a gradient, and no hook is left"),
        "alive": (
            1,
            (
                "while backward runs, at most two whole gradients are in memory, and none "
                "afterwards, and one reduce-scatter sends each gradient"
            ),
        ),
    },
    "gather": {
        "values": (1, "forward computes what a layer with its whole weight computes"),
        "gradients": (1, "the gradients of x and of the shard are right"),
        "traffic": (
            1,
            (
                "forward sends one all-gather, and backward sends one all-gather and one "
                "reduce-scatter"
            ),
        ),
        "freed": (
            1,
            "the weight is not in memory between forward and backward, nor after backward",
        ),
    },
    "masters": {
        "moves": (
            1,
            (
                f"small steps add up in float32, so that after {MASTER_STEPS} of them the master is"
                " right, and the weights, changed in place, are the rounded master"
            ),
        ),
        "states": (1, "a rank keeps one float32 number for each parameter of its shard"),
        "traffic": (
            1,
            (
                "the gradients are sent once, in at most four bytes each, and the new weights once,"
                " in two bytes each"
            ),
        ),
    },
    "clip": {
        "norm": (1, "every rank returns the norm of all numbers, and of nothing else"),
        "clipped": (1, "shards are clipped in place where the norm is too large, and only there"),
        "traffic": (1, "only one number is sent, by one all-reduce"),
    },
    "training": {
        "start": (
            1,
            (
                "before the first step, the shards of all ranks form the network that a single "
                "process creates"
            ),
        ),
        "steps": (
            2,
            (
                "after 1 and 3 steps, on meshes of 4 ranks and of 2, the weights are what a single "
                "process computes, and each step scatters its gradients once"
            ),
        ),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "output tensor size must be equal to world_size times input tensor size": (
            "all_gather_single fills a vector that is as long as all shards together, padding "
            "included."
        ),
        "input tensor must be the same size as output size times world size": (
            "reduce_scatter_single takes the padded vector, which is as long as all shards "
            "together."
        ),
        "a leaf Variable that requires grad is being used in an in-place operation": (
            "A parameter can be changed in place only outside the graph, so change p.detach(), or "
            "use torch.no_grad()."
        ),
        "object has no attribute 'ctx'": (
            "Forward and backward of a torch.autograd.Function are static, so keep in ctx what "
            "backward needs."
        ),
        "returned an incorrect number of gradients": (
            "backward must return four values, a gradient or None for each of x, own, shape and "
            "group."
        ),
        "'NoneType' object has no attribute": (
            "Something is None that should be a tensor. If it is p.grad in a hook, is a hook left "
            "from an earlier call, which has already cut this gradient?"
        ),
        "mat1 and mat2 shapes cannot be multiplied": (
            "The shapes do not fit. Forward is x @ weight.T, whereas backward is gradient @ weight "
            "for x and gradient.T @ x for the weight."
        ),
        "tuple index out of range": (
            "The code asks for a shard that does not exist. Shards are counted inside the group, so"
            " use dist.get_rank(group), because dist.get_rank() counts in the world."
        ),
        "invalid tensor size": (
            "The ranks that meet in this collective pass tensors of different lengths. Is `group` "
            "given to every collective?"
        ),
        "got a mixture of": (
            "The types are mixed. The tensor that a collective fills and the tensor that it takes "
            "must have the same type."
        ),
        "Only one ProcessGroup": "All ranks of a group must call it with the same group.",
    },
    "hangs": (
        "Ranks wait for each other. Is `group` given to every collective, and do all ranks of the "
        "group call the same ones in the same order?"
    ),
    # memory
    "not whole": "The answer must be a whole number, because only whole layers count.",
    "no padding": (
        "This is without padding. Each layer is padded separately, so that its shard has ceil(n / "
        "ranks) numbers."
    ),
    "cut down": (
        "The division is rounded down, so the last parameters have no place. Round up instead."
    ),
    "one vector": (
        "This pads all layers as one vector, but each layer is a separate vector with separate "
        "padding."
    ),
    "work without padding": (
        "The layer at work is counted without padding. Since the collectives take it padded, it is "
        "as long as all its shards together."
    ),
    "no work": "The layer at work is missing. For a moment it is whole, in addition to the shards.",
    "all at work": (
        "This counts all layers as whole at the same time. Since only one is at work at a time, "
        "count the largest."
    ),
    "work of all layers": (
        "This counts all layers as whole at the same time. Since only one is at work at a time, "
        "count the largest, with its padding."
    ),
    "no gradient at work": (
        "The layer at work also has a whole gradient, which exists until it is cut into shards."
    ),
    "instead of": (
        "The layer at work must be added, because its shard stays in memory next to the whole "
        "vector."
    ),
    "one stage late": (
        "This shards each thing one stage too late. The states are sharded from stage 1 on, the "
        "gradients from stage 2 on, and the weights in stage 3."
    ),
    "gradients early": (
        "The gradients are whole on each rank in stage 1, because they are sharded from stage 2 on."
    ),
    "stage 0": "This is what stage 0 needs, in which nothing is sharded.",
    "memory other": (
        "Count for each layer what is whole and what is a shard, and then add the largest layer at "
        "work."
    ),
    "every layer at work": (
        "The layer at work counts once, and not once for each layer, so subtract it from the device"
        " before you divide."
    ),
    "nothing at work": "The layer at work needs its place too, including its padding.",
    "one too many": "That is one layer more than fits.",
    "one too few": "One more layer fits. Layers that fill the device exactly still fit.",
    "below none": "The answer cannot be negative. If not even one layer fits, the answer is 0.",
    "most other": (
        "How many bytes does each further layer add, and how many are left of the device for them "
        "once the layer at work has its place?"
    ),
    # shards
    "no tensor": "This should be a tensor, but it is not.",
    "length": (
        "The shard has {got} numbers instead of {expected}. All shards have ceil(n / ranks) numbers"
        " and are padded with zeros at the end."
    ),
    "short": (
        "This has {got} numbers instead of {expected}. The padding is missing, so the ranks would "
        "differ, but all shards must be equally long."
    ),
    "shape": "The shape is {got} instead of {expected}.",
    "type": (
        "The type of the numbers is {got} instead of {expected}, which is the type of the argument."
    ),
    "not flat": "A shard must be flat, that is, it must have one dimension.",
    "padding in front": "The padding is at the wrong end. The zeros must follow the numbers.",
    "padding": "The numbers are right, but the padding is not. Fill it with zeros.",
    "every other": (
        "This takes every {ranks}-th number, but a shard consists of consecutive numbers."
    ),
    "other shard": "This is the shard of a different rank.",
    "a view": (
        "The shard is a view whose memory has {got} numbers, so the whole tensor stays alive as "
        "long as the shard does. Copy it with clone()."
    ),
    "shares": "The shard changes when the tensor does, so copy it with clone().",
    "not finite": "Some of the numbers are not finite.",
    "summed": "This is the sum over the ranks, but it should be the mean.",
    "own": (
        "This was made from this rank's tensor alone. The tensors of the other ranks are missing."
    ),
    "divided twice": "This is the mean, divided by the number of ranks a second time.",
    "order of ranks": "The shards are put together in the wrong order.",
    "other": "These are not the right numbers.",
    "rounded": (
        "These are nearly the right numbers, but they were rounded on the way. Keep the type of the"
        " argument."
    ),
    "sent whole": (
        "It sent {got} bytes, but {expected} are enough. An all-reduce gives the whole vector to "
        "each rank, whereas a reduce-scatter gives each rank its shard, with half the bytes."
    ),
    "sent": (
        "It sent {got} bytes, but {expected} are enough. Is something sent more than once, or more "
        "of it than the shards, or in a wider type?"
    ),
    # zero1
    "weights summed": (
        "These weights result from the sum of the gradients, but Adam must get their mean. The "
        "difference is small, because only eps shows it."
    ),
    "weights own": (
        "These weights result from a rank's own gradients, which were not averaged over the ranks."
    ),
    "stale": (
        "These are the weights before the last step, because the shards were gathered before Adam "
        "had changed them."
    ),
    "unmoved": (
        "No weight has changed. Are the new shards gathered, and written into the parameters in "
        "place?"
    ),
    "shard only": (
        "Only this rank's shard is new, while the rest is as it was. Gather the shards of all "
        "ranks."
    ),
    "begun anew": (
        "This is Adam without a memory, because its two numbers began again at each step. Keep them"
        " in `state`."
    ),
    "counted parameters": (
        "Adam's count of steps goes up with each parameter. It must go up once in each step, so "
        "that it is 1, 2, 3."
    ),
    "eps default": "This is Adam with its default eps instead of the one that was given.",
    "not of one process": "These are not the weights that a single process computes.",
    "parameters replaced": (
        "A parameter now has different memory. Write into it in place, so that everything that "
        "refers to it sees the new weights."
    ),
    "states whole": (
        "`state` holds {got} numbers, but at most three are needed for each parameter of the shard,"
        " which is {expected}. The states of the other shards belong to the other ranks."
    ),
    "kept beside state": (
        "The steps have left {got} numbers in memory, but {expected} are enough. Something other "
        "than `state`, for example a global list, keeps tensors that are no longer used."
    ),
    "states none": (
        "`state` does not hold two numbers for each parameter of the shard. What Adam must remember"
        " belongs there."
    ),
    # zero2
    "no list": "Return a list of {expected} shards, one for each parameter.",
    "left": (
        "{got} parameters still have a gradient afterwards. Free it in the hook with p.grad = None."
    ),
    "hooks left": (
        "{got} hooks are left, so each later backward pass would run them too. Remove them when "
        "backward has ended."
    ),
    "no backward": (
        "Only {got} of {expected} parameters got their gradient from loss.backward(). Run it, and "
        "let hooks cut each gradient while it runs."
    ),
    "piled up": (
        "{got} whole gradients were in memory while backward was running, but only {expected} are "
        "allowed. Cut each one in its hook and free it there. Does something else, such as a list, "
        "keep one alive?"
    ),
    "piled up copies": (
        "While backward was running, {got} numbers that were created meanwhile were in memory at "
        "the same time, but two whole gradients, the shards and what backward itself needs are at "
        "most {expected}. Since a copy of a gradient is as large as the gradient, cut each one in "
        "its hook, and keep no copy of it (clone(), one long vector)."
    ),
    "copies kept": (
        "Afterwards, {got} numbers that were created while backward ran are still in memory, in "
        "addition to the shards, but only {expected} are allowed. Does a list or a global keep "
        "copies of gradients?"
    ),
    "views of copies": (
        "The shards have {expected} numbers, but they keep memory of {got} numbers alive. Since a "
        "slice of a padded or copied gradient keeps all of it, clone() the slice."
    ),
    "views": (
        "{got} whole gradients are still in memory afterwards. Are the shards views of them? A "
        "shard must have separate memory."
    ),
    "order of parameters": (
        "The shards are in a different order from the parameters. Is it the order of backward? Each"
        " shard must have its parameter's place in the list."
    ),
    "last parameter": (
        "Only the last parameter's place is filled. A function that is made in a loop sees the "
        "loop's last value, so give each function its own value with functools.partial."
    ),
    "second call": (
        "The first call was right, but the second one was not. Are hooks left from the first call? "
        "Remove them."
    ),
    # gather
    "x averaged": (
        "The gradient of x is averaged over the ranks. Since each rank has its own rows, the "
        "gradient must stay as it is."
    ),
    "x summed": (
        "The gradient of x is summed over the ranks. Since each rank has its own rows, the gradient"
        " must stay as it is."
    ),
    "no gradient": "There is no gradient. Does backward return one?",
    "forward sent": "Forward sent {got} bytes, whereas one all-gather sends {expected}.",
    "backward less": (
        "Backward sent {got} bytes, whereas an all-gather and a reduce-scatter send {expected}. If "
        "the weight is still in memory from forward, it was never freed."
    ),
    "backward more": (
        "Backward sent {got} bytes, whereas an all-gather and a reduce-scatter send {expected}."
    ),
    "kept": (
        "Between forward and backward, {got} numbers are kept in addition to x and the shard, which"
        " is at least as many as the weight has. Keep only what is small (in ctx, on the class and "
        "in globals too), and gather again."
    ),
    "kept after": (
        "After backward, {got} numbers are still in memory in addition to the gradients, which is "
        "at least as many as the weight has. Release the weight when it has been used."
    ),
    # masters
    "became": "The parameters are {got} now, but they must stay bfloat16.",
    "vanished": (
        "Steps have vanished, and {stuck} of {numel} numbers have not changed. A step that is too "
        "small for bfloat16 must be added in float32."
    ),
    "rounded sum": (
        "The gradients were added up in bfloat16, where a small one vanishes next to a large one. "
        "Convert them to float32 before they are sent."
    ),
    "master rounded": (
        "The rounded weights are right, but a number of the master is wrong by {got}, whereas "
        "float32 loses {expected}. Is the gradient, its mean, the step or lr rounded to bfloat16 "
        "on the way? After more steps, the weights would be wrong too. Begin with p.grad.float(), "
        "and round only the new weights."
    ),
    "no masters": (
        "`state` is too small to hold the shard in float32, although the master shard must be kept "
        "there."
    ),
    "masters more": (
        "`state` holds {got} bytes, but the master shard has {expected}, which is four for each of "
        "its parameters and none for the other ranks' shards."
    ),
    "kept beside masters": (
        "The steps have left {got} bytes in memory, but the master shard has {expected}. Something "
        "other than `state`, for example a global list, keeps tensors that are no longer used."
    ),
    "gathered wide": (
        "The new weights are sent as {got}. Round them before the all-gather, so that only half the"
        " bytes are sent."
    ),
    # clip
    "norm of shard": (
        "This is the norm of this rank's shards alone. Add up the squares of all ranks."
    ),
    "norm of norms": (
        "These are norms that were added up. Instead, add up the squares, and take the root once, "
        "at the end."
    ),
    "norm padded": (
        "This norm includes the padding. On rank r, at most max(0, n - r * k) of the k numbers of a"
        " shard are real."
    ),
    "norm world rank": (
        "This norm leaves out real numbers, as if the rank in the world were the rank in the group."
        " Use dist.get_rank(group), which counts inside the group."
    ),
    "norm times 0": (
        "This is not a number. The padding may contain nan, and 0 times nan is nan, so leave the "
        "padding out."
    ),
    "norm one vector": "This is the norm of one vector, but the norm of all vectors is needed.",
    "norm averaged": "The squares are averaged over the ranks, but their sum is needed.",
    "norm squared": "This is the square of the norm.",
    "norm other": "This is not the norm of all numbers.",
    "norm after": "This is the norm after clipping. Return the norm before clipping instead.",
    "grown": (
        "The norm is smaller than max_norm, so nothing may change, but the numbers were scaled up."
    ),
    "unclipped": (
        "The norm is larger than max_norm, but nothing was clipped. Change the shards in place."
    ),
    "clipped own": (
        "Each shard was clipped by its own norm, so the vectors point in a different direction. Use"
        " the same factor for all shards."
    ),
    "clipped other": (
        "The clipped numbers are not right. Multiply all of them by max_norm / norm, with the norm "
        "of all numbers."
    ),
    "no number": "This is not a number.",
    "calls many": (
        "{got} numbers were sent in {calls} collectives. Add up the squares of all vectors first, "
        "so that one all-reduce of one number is enough."
    ),
    "calls none": "There was no collective. How do the other ranks' squares reach this rank?",
    # training
    "not sharded": (
        "The function must return the network that `fully_shard` has cut, in which all parameters "
        "are DTensors that are placed with Shard."
    ),
    "four networks": (
        "The shards belong to different networks, because rank r has cut the network of seed + r. "
        "DDP broadcasts the weights when it wraps a network, but `fully_shard` does not."
    ),
    "other start": (
        "With steps = 0, the shards do not form the network that `make()` creates after "
        "torch.manual_seed(seed)."
    ),
    "first micro-batch only": (
        "The step used the gradients of the first micro-batch only. The gradients of the later ones"
        " stay on their rank until the next reduce-scatter, which is in the next step."
    ),
    "stale and clipped own": (
        "The step used the gradients of the first micro-batch only, and each rank clipped its "
        "shards by their own norm."
    ),
    "not clipped": (
        "These are the weights without clipping. Gradients whose norm is larger than max_norm must "
        "be scaled down before the step."
    ),
    "not divided": (
        "The gradients of the micro-batches are added up, but the step must use their mean, so "
        "divide each loss by the number of micro-batches."
    ),
    "scattered often": (
        "The weights are right, but {got} numbers were reduce-scattered, although {expected} are "
        "enough. Use one reduce-scatter for each step, and not for each micro-batch."
    ),
    "scattered never": (
        "The weights are right, but only {got} numbers were reduce-scattered, although {expected} "
        "are needed. Let `fully_shard` average the gradients."
    ),
    "sum of norms": (
        "All shards were clipped by one factor, but it was computed from the sum of the norms of "
        "the ranks' shards. Add up their squares, and take the root of the sum."
    ),
    "norm of the world": (
        "The norm was added up over all ranks of the world. Since the network is split over only "
        "two of them here, give `group=mesh.get_group()` to the all-reduce."
    ),
    "mesh ignored": (
        "These are not the weights that a single process computes, although the loop is right on "
        "the mesh of all ranks. Take the rank, the number of ranks and the group of each "
        "collective from `mesh`, and not from the world."
    ),
    "other training": (
        "These are not the weights that a single process computes from the same 32 rows in each "
        "step, with SGD, a learning rate of 0.5 and clipping by the norm of all gradients."
    ),
}

HINTS: Hints = {  # {name: (where to look or what to compare, the kind of idea that is needed)}
    "16-memory": (
        (
            "Take one layer of 10 parameters on 4 ranks and write down what is kept in each of the "
            "four stages. Which of the three kinds of numbers is a shard of 3, and which is a "
            "vector of 10? Then add what is whole for a moment."
        ),
        (
            "Rounding the quotient up gives the length of a shard. The layer at work is a fixed "
            "amount that does not depend on how many layers there are, so most_layers is what is "
            "left of the device, divided by what each further layer adds."
        ),
    ),
    "16-shards": (
        (
            "Work on paper with 10 numbers and 4 ranks. How many zeros follow, which numbers belong"
            " to rank 3, and what must be cut off after the gather? For the mean, compare what an "
            "all-reduce and a reduce-scatter give to each rank."
        ),
        (
            "Python's % gives a result that is not negative, even if the number on its left is "
            "negative, which is useful for padding. unshard and reduce_shard each need one empty "
            "vector of the right length and one collective that fills it. What is only a view must "
            "be copied."
        ),
    ),
    "16-zero1": (
        (
            "Three things happen in a step, one after the other. Gradients become shards of their "
            "mean, Adam takes its step, and the new shards become whole parameters. Which of your "
            "tools does the first, and which the third?"
        ),
        (
            "Adam's moments belong to the tensors that it was given. Therefore, the same shards and"
            " the same optimiser must be used in each step, so make them once and keep them in "
            "`state`. When a whole parameter has been put together again, copy it into the memory "
            "of the old one."
        ),
    ),
    "16-zero2": (
        (
            "Run the evidence for both calls, and compare three numbers with the number of "
            "parameters, namely the filled places, the gradients that are left, and the "
            "reduce-scatters. Each of them has a separate cause."
        ),
        (
            "There are three kinds of faults. A function that is defined in a loop does not "
            "remember the value that a variable had then, a tensor that is still referred to is "
            "not freed, and what is registered for one backward pass stays registered for all "
            "later ones."
        ),
    ),
    "16-gather": (
        (
            "Compare the three lines of the evidence with the tutorial's Stage 3. What may be kept "
            "for backward, what is sent in backward, and to whose rows does the gradient of x "
            "belong?"
        ),
        (
            "There are two kinds of faults. Something is kept that is as large as the weight, "
            "although it could be gathered again. In addition, something is divided as if it were "
            "a mean over the ranks, although it belongs to one rank alone."
        ),
    ),
    "16-masters": (
        (
            "Follow one number on its way. The gradient is sent, becomes a mean, is multiplied by "
            "lr and is subtracted, and the new weight is sent. Which type does it have at each of "
            "these places, and which type should it have?"
        ),
        (
            "Everything that is added up or subtracted must be float32 before that happens, and "
            "only the finished weight may be rounded. The master is made at the first step and is "
            "then changed in place."
        ),
    ),
    "16-clip": (
        (
            "Take a vector of 10 numbers on 4 ranks, and write down for each rank how many numbers "
            "of its shard are real. Then think about which quantity may be added over vectors and "
            "over ranks."
        ),
        (
            "The number of real entries follows from the size, the rank in the group and the length"
            " of the shard, and it is never negative. Squares may be added, whereas roots may not, "
            "so take one root at the very end. All vectors are scaled by the same factor."
        ),
    ),
    "16-training": (
        (
            "Run the evidence with one step changed at a time. For each of its three lines, ask "
            "what a single process would print, and which statement of the loop is responsible for "
            "that line."
        ),
        (
            "There are three kinds of faults. The ranks start apart, although nothing brings them "
            "together. A switch is on for the wrong micro-batch. Finally, a number of one shard is "
            "taken for a number of the whole network."
        ),
    ),
}
