"""The messages of unit 03's checks: what each criterion asks for, the mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "scatter": {
        "rows": (
            1,
            (
                "tensors are cut as torch.chunk cuts them, even if that gives fewer pieces than "
                "devices"
            ),
        ),
        "nested": (
            2,
            (
                "tuples, lists and dicts keep their type at every depth, whatever is not a tensor "
                "goes to all replicas, and the fewest pieces decide"
            ),
        ),
        "devices": (1, "each piece is on its device"),
        "gradient": (1, "the gradient of the pieces arrives in the tensor that was cut"),
    },
    "gather": {
        "tensors": (
            1,
            "the rows of all replicas are joined in their order, on the device that is asked for",
        ),
        "nested": (
            1,
            (
                "tuples, lists, dicts and None are gathered at every depth, different keys raise a "
                "ValueError, and what cannot be gathered raises a TypeError"
            ),
        ),
        "scalars": (1, "a number from each replica becomes a vector"),
        "gradient": (1, "the gradient of what was gathered arrives in the outputs of each replica"),
    },
    "replicate": {
        "copies": (
            1,
            (
                "the replicas are separate modules that compute the same, each on its device, and "
                "the original is as it was"
            ),
        ),
        "gradients": (
            2,
            (
                "the gradients of all replicas add up in the original, for tied weights too, and a "
                "frozen weight has none"
            ),
        ),
        "buffers": (
            1,
            "replica 0 shares its buffers with the original, while the others have copies",
        ),
        "tied": (1, "a weight that two layers share is one tensor in each replica"),
    },
    "apply": {
        "threads": (1, "all replicas are under way at the same time, in threads"),
        "results": (
            1,
            "the results are in the order of the replicas, each of which got its own arguments",
        ),
        "modes": (1, "no_grad and autocast, with its dtype, hold in the threads as in the caller"),
        "errors": (
            1,
            (
                "an exception in a replica is raised in the caller, with the number of the first "
                "replica that has failed"
            ),
        ),
    },
    "forward": {
        "outputs": (
            1,
            (
                "the outputs of the replicas are gathered, for odd batches, nested inputs, and "
                "fewer rows than replicas need"
            ),
        ),
        "gradients": (
            1,
            (
                "the gradients in the original equal what a single process computes, and add up "
                "over two steps"
            ),
        ),
        "statistics": (
            1,
            (
                "with batch norm, each replica normalises its own rows, and the statistics of "
                "replica 0 stay, as with nn.DataParallel"
            ),
        ),
        "gpus": (
            1,
            "outputs, gradients and buffers equal what nn.DataParallel itself gives, on real GPUs",
        ),
    },
    "loss": {
        "mean": (
            1,
            (
                "the loss and its gradient equal what the mean over all rows gives, even with "
                "uneven pieces"
            ),
        ),
        "bytes": (1, "a replica returns two numbers at most"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "raised": "{name} raised {error}",
    "gpus": "this needs two GPUs or more",
    "known": {
        "index out of range": (
            "There can be fewer pieces than devices, so the number of pieces decides how many "
            "replicas there are, and not the number of devices."
        ),
        "zero-dimensional tensor": (
            "A tensor without dimensions has no rows to join, so stack such numbers into a vector."
        ),
        "stack expects each tensor to be equal size": (
            "The replicas' pieces differ in size, so join rows (torch.cat) "
            "instead of stacking them."
        ),
        "Cannot copy out of meta": "Move each piece to its own device, and nothing back.",
        "Expected all tensors to be on the same device": (
            "Something was left on another device, so move both parameters and buffers."
        ),
        "Only Tensors created explicitly by the user": (
            "deepcopy copies only leaves, so pass it the copies in its memo, {id(original): copy}."
        ),
        "cannot assign": (
            "A Parameter is always a leaf, so replace it by the connected copy as a plain tensor, "
            "with delattr first, or through `_parameters`."
        ),
        "missing 1 required positional argument": (
            "A replica was called without its inputs. Cut positional and keyword "
            "arguments together, so that both give the same number of pieces."
        ),
        "required keyword-only argument": (
            "A replica was called without its keyword arguments, so call "
            "replicas[i](*inputs[i], **kwargs[i])."
        ),
        "must match the size of tensor": (
            "Pieces of different lengths meet in a replica. Cut positional and keyword "
            "arguments together, with every tensor in them."
        ),
        "BrokenBarrierError": (
            "The replicas were not all under way at the same time. Start all threads before you "
            "wait for the first one."
        ),
        "can't optimize a non-leaf": "The parameters of the original must stay what they are.",
    },
    # scatter
    (
        "scatter",
        "rows",
        "balanced",
    ): (
        "{n} rows on {k} devices were distributed as evenly as possible, whereas "
        "torch.chunk rounds up, to pieces of ceil({n} / {k}) rows until none are left."
    ),
    (
        "scatter",
        "rows",
        "empty",
    ): (
        "{n} rows on {k} devices give fewer pieces than devices. Leave empty pieces out, "
        "because a replica without rows is not called at all."
    ),
    (
        "scatter",
        "rows",
        "dropped",
    ): "Rows are lost, because {n} // {k} leaves a remainder, so round up.",
    (
        "scatter",
        "rows",
        "rest to the last",
    ): "The last piece has the remainder of {n} / {k}, and all others wait for it, so round up.",
    (
        "scatter",
        "rows",
        "dealt",
    ): (
        "The rows are distributed over the replicas in turn. Keep neighbours together, "
        "because otherwise the outputs are in a different order."
    ),
    (
        "scatter",
        "rows",
        "whole",
    ): "Each replica has all the rows, which is {k} times the work, so cut the tensor.",
    (
        "scatter",
        "rows",
        "other",
    ): "{n} rows on {k} devices must become one piece for each replica, cut as torch.chunk cuts.",
    (
        "scatter",
        "nested",
        "not opened",
    ): (
        "A container inside a container goes to every replica as a whole. Scatter "
        "what is in it in the same way, at every depth."
    ),
    (
        "scatter",
        "nested",
        "empty",
    ): (
        "There is not a single item, perhaps because zip() of nothing ends immediately. An "
        "empty container must go to all replicas as it is."
    ),
    (
        "scatter",
        "nested",
        "copied",
    ): "Anything but a tensor goes to all replicas as the same object, but you have made copies.",
    (
        "scatter",
        "nested",
        "lists cut",
    ): (
        "A list of words is not a tensor, so every replica gets all of it, since only "
        "tensors are cut."
    ),
    (
        "scatter",
        "nested",
        "types",
    ): (
        "The types have changed, although a tuple must stay a tuple, a list a list and a "
        "dict a dict."
    ),
    (
        "scatter",
        "nested",
        "other",
    ): (
        "For {n} rows on {k} devices, {pieces} items are right, with as many rows each as "
        "torch.chunk gives them. Each item looks like the value, with a piece instead of "
        "each tensor."
    ),
    (
        "scatter",
        "devices",
        "not moved",
    ): "The pieces were cut but not moved, although piece i belongs on devices[i].",
    (
        "scatter",
        "devices",
        "all on the first",
    ): "All pieces are on the first device, but piece i belongs on devices[i].",
    ("scatter", "devices", "other"): "Piece i belongs on devices[i], at every depth of the value.",
    (
        "scatter",
        "gradient",
        "detached",
    ): (
        "No gradient arrives, because the pieces are cut off from the tensor. Avoid "
        ".detach(), .data, and new tensors made from numbers."
    ),
    (
        "scatter",
        "gradient",
        "other",
    ): "The gradient of the pieces is not the gradient of the tensor's rows.",
    # gather
    (
        "gather",
        "tensors",
        "a list",
    ): "The outputs are still one piece for each replica, so join their rows.",
    ("gather", "tensors", "reversed"): "The replicas are in the wrong order.",
    ("gather", "tensors", "first"): "The result has only the first replica's rows.",
    (
        "gather",
        "tensors",
        "not moved",
    ): "The result is not on the device that was asked for, so move the outputs there.",
    (
        "gather",
        "tensors",
        "other",
    ): "Join the rows of all replicas in their order, and return one tensor.",
    (
        "gather",
        "nested",
        "by position",
    ): (
        "Values of dicts were matched by their place. Since the replicas need not "
        "have their keys in the same order, go by key."
    ),
    (
        "gather",
        "nested",
        "types",
    ): (
        "The types have changed, although a tuple must stay a tuple, a list a list and a "
        "dict a dict."
    ),
    (
        "gather",
        "nested",
        "a list",
    ): "The outputs are still one for each replica, so open the containers.",
    ("gather", "nested", "untouched"): "The result has only the first replica's outputs.",
    (
        "gather",
        "nested",
        "keys lost",
    ): (
        "One replica has a key that another one lacks, and this went unnoticed, so "
        "raise a ValueError."
    ),
    (
        "gather",
        "nested",
        "other",
        "keys",
    ): "If the replicas' dicts have different keys, raise a ValueError.",
    (
        "gather",
        "nested",
        "other",
        "number",
    ): (
        "A Python number cannot be gathered, because it has no rows, no device "
        "and no gradient, so raise a TypeError."
    ),
    (
        "gather",
        "nested",
        "other",
    ): (
        "The result must look like one replica's output, with the rows of all in each "
        "tensor, and None where all have None."
    ),
    (
        "gather",
        "scalars",
        "mean",
    ): (
        "The numbers were averaged. Since the caller decides what becomes of them, return a "
        "vector with one number for each of {k} replicas."
    ),
    (
        "gather",
        "scalars",
        "sum",
    ): (
        "The numbers were added up. Since the caller decides what becomes of them, return a "
        "vector with one number for each of {k} replicas."
    ),
    ("gather", "scalars", "first"): "The result has only the first replica's number.",
    (
        "gather",
        "scalars",
        "column",
    ): "The result must be a vector of {k} numbers, with one dimension.",
    (
        "gather",
        "scalars",
        "other",
    ): "Each of {k} replicas returns a tensor without dimensions, so return a vector of them.",
    (
        "gather",
        "gradient",
        "detached",
    ): "No gradient arrives at the replicas, because the result is cut off from their outputs.",
    (
        "gather",
        "gradient",
        "scalars detached",
    ): (
        "No gradient arrives through the scalars. Stack them instead of making "
        "new numbers with torch.tensor([...])."
    ),
    ("gather", "gradient", "rows detached"): "No gradient arrives through the rows.",
    (
        "gather",
        "gradient",
        "other",
    ): "The gradient that arrives at the replicas is not the gradient of their rows.",
    # replicate
    (
        "replicate",
        "copies",
        "module changed",
    ): (
        "The original has changed, because its parameters are no longer the "
        "same tensors. Put the copies into separate modules."
    ),
    (
        "replicate",
        "copies",
        "same module",
    ): (
        "Replicas share modules with the original, or with each other. Threads "
        "need separate modules, at every depth."
    ),
    ("replicate", "copies", "too few"): "There must be one replica for each device.",
    ("replicate", "copies", "not moved"): "Nothing was moved, but replica i belongs on devices[i].",
    (
        "replicate",
        "copies",
        "buffers left",
    ): (
        "The buffers have stayed behind, although they belong on the replica's "
        "device, as parameters do."
    ),
    (
        "replicate",
        "copies",
        "other",
    ): "Each replica must compute what the original computes, on its own device.",
    (
        "replicate",
        "gradients",
        "none",
    ): (
        "The original has no gradient, perhaps because the replicas' parameters are "
        "separate leaves (deepcopy makes such). Copy each parameter by an operation "
        "that backward knows, such as p.to(device, copy=True), and not under "
        "torch.no_grad()."
    ),
    (
        "replicate",
        "gradients",
        "tied",
    ): (
        "The gradient of the tied weight is not complete. It has two names, of which "
        "named_parameters() gives only the first, so under the second one the replica "
        "has an unconnected copy."
    ),
    (
        "replicate",
        "gradients",
        "one replica",
    ): (
        "Only the gradient of replica 0 has arrived, because the other "
        "replicas' parameters are not connected to the original."
    ),
    ("replicate", "gradients", "others lost"): "The gradient of replica 0 has not arrived.",
    (
        "replicate",
        "gradients",
        "frozen",
    ): (
        "The frozen weight has a gradient now, or requires one, either in the "
        "original or in a replica."
    ),
    (
        "replicate",
        "gradients",
        "other",
    ): "The gradients in the original are not the sum over the replicas.",
    (
        "replicate",
        "buffers",
        "lost",
    ): (
        "What replica 0 has written into its buffer is lost, so it must share its "
        "buffers with the original."
    ),
    (
        "replicate",
        "buffers",
        "shared",
    ): (
        "All replicas write into one buffer, and threads do so at the same time. Only "
        "replica 0 may share it. On the same device, .to(device) makes no copy unless "
        "you pass copy=True."
    ),
    (
        "replicate",
        "buffers",
        "one copy",
    ): "Two replicas share a buffer, although each needs its own copy.",
    (
        "replicate",
        "buffers",
        "other",
    ): "The buffer of the original must contain what replica 0 has written, and no more.",
    (
        "replicate",
        "tied",
        "untied",
    ): (
        "A tied weight was copied once for each of its names, which takes twice the "
        "memory. Make one copy for each parameter, not for each name."
    ),
    (
        "replicate",
        "tied",
        "other",
    ): (
        "Layers that share a weight in the original must share one in each replica, and no "
        "others may."
    ),
    # parallel_apply
    (
        "apply",
        "threads",
        "one after the other",
    ): (
        "The {k} replicas were not all under way at the same time. Start all "
        "threads first, one for each, and only then wait for them (join)."
    ),
    (
        "apply",
        "threads",
        "other",
    ): "Each of {k} replicas must be called once, in a thread, with its own inputs.",
    (
        "apply",
        "results",
        "in order of completion",
    ): (
        "The results are in the order in which the threads ended. Give "
        "each its place, which is the number of its replica."
    ),
    (
        "apply",
        "results",
        "nothing",
    ): (
        "The results have not come back, because a thread's return value is lost. Let it "
        "write into a list of the caller instead."
    ),
    (
        "apply",
        "results",
        "other",
    ): "results[i] must be what replicas[i](*inputs[i], **kwargs[i]) returns.",
    (
        "apply",
        "modes",
        "grad mode",
    ): (
        "Under {mode}, the threads still build a graph. Since grad mode belongs to a "
        "thread, and a new one begins with it on, carry it over."
    ),
    (
        "apply",
        "modes",
        "nothing",
    ): (
        "Under {mode}, the threads do not know the mode. Since grad mode and autocast "
        "belong to a thread, carry both over."
    ),
    (
        "apply",
        "modes",
        "autocast",
    ): (
        "Under {mode}, there is no autocast in the threads. Since it belongs to a thread, "
        "carry it over."
    ),
    (
        "apply",
        "modes",
        "dtype",
    ): (
        "Under {mode}, the threads use a different dtype. Since it belongs to a thread, too, "
        "carry torch.get_autocast_dtype over."
    ),
    (
        "apply",
        "modes",
        "other",
    ): (
        "Under {mode}, the threads are in a different mode from the caller. The values shown "
        "are grad mode, autocast, and its dtype."
    ),
    (
        "apply",
        "errors",
        "swallowed",
    ): (
        "Replica {bad} fails with its own inputs, but the caller did not notice, because "
        "an exception ends only its own thread. Catch it there, and raise it in the "
        "caller."
    ),
    (
        "apply",
        "errors",
        "no number",
    ): "The caller cannot see which replica has failed, so write `replica {bad}` in the text.",
    (
        "apply",
        "errors",
        "original lost",
    ): (
        "The exception of replica {bad} is lost, and with it the place where it was "
        "raised, so pass it on (`raise ... from error`)."
    ),
    (
        "apply",
        "errors",
        "too early",
    ): (
        "The caller got an exception while a replica was still under way. Wait for all "
        "threads first, and then raise."
    ),
    (
        "apply",
        "errors",
        "not the first",
    ): (
        "Several replicas have failed, and replica {bad} is the first of them. Wait "
        "for all, and then look in their order."
    ),
    (
        "apply",
        "errors",
        "other",
    ): (
        "Replica {bad} has failed, so raise an exception that contains `replica {bad}`, and "
        "pass the original on."
    ),
    # data_parallel
    (
        "forward",
        "outputs",
        "in the caller",
    ): (
        "The outputs are right, but no replica ran in a thread, so run the "
        "replicas with your parallel_apply."
    ),
    ("forward", "outputs", "not moved"): "The result is not on output_device, so gather it there.",
    ("forward", "outputs", "a list"): "The outputs are still one for each replica, so gather them.",
    (
        "forward",
        "outputs",
        "types",
    ): "The outputs have a different type from the module's own outputs.",
    (
        "forward",
        "outputs",
        "other",
    ): (
        "For {n} rows on {k} devices, scatter, replicate as often as there are pieces, "
        "apply, and gather."
    ),
    ("forward", "gradients", "none"): "The original has no gradient.",
    ("forward", "gradients", "tied"): "The gradient of the tied weight is not complete.",
    ("forward", "gradients", "one replica"): "Only the gradient of replica 0 has arrived.",
    ("forward", "gradients", "other"): "The gradients differ from what a single process computes.",
    (
        "forward",
        "statistics",
        "lost",
    ): "Batch norm's running statistics did not change, because replica 0 writes into a copy.",
    (
        "forward",
        "statistics",
        "shared",
    ): "All replicas have written batch norm's running statistics, in threads at the same time.",
    (
        "forward",
        "statistics",
        "whole batch",
    ): "These are the statistics of the whole batch, because the module ran on all rows at once.",
    (
        "forward",
        "statistics",
        "last replica",
    ): (
        "These are the last replica's statistics, whereas nn.DataParallel keeps "
        "the statistics of replica 0."
    ),
    (
        "forward",
        "statistics",
        "other",
    ): "The running statistics are not the statistics of replica 0's rows.",
    ("forward", "gpus", "other"): "nn.DataParallel gives a different result on these GPUs.",
    # loss
    (
        "loss",
        "mean",
        "mean of means",
    ): (
        "This is the mean of {k} means. Since the pieces have {sizes} rows, a row of "
        "the small one counts more. Return sums and counts instead, and divide once."
    ),
    ("loss", "mean", "sum of means"): "The means of {k} replicas were added up.",
    ("loss", "mean", "sum"): "The losses were added up but not divided.",
    (
        "loss",
        "mean",
        "no tensor",
    ): (
        "The loss must be one number in a tensor that keeps its gradient, so use neither "
        ".item() nor .detach()."
    ),
    ("loss", "mean", "other"): "This is not the mean of the losses of all rows.",
    (
        "loss",
        "mean",
        "no tensors",
    ): (
        "loss_part returns one {what} or more. Since only tensors can be gathered "
        "(exercise 2), make a tensor of the number."
    ),
    (
        "loss",
        "bytes",
        "no tensors",
    ): "loss_part returns one {what} or more, although it must return tensors.",
    (
        "loss",
        "bytes",
        "too much",
    ): (
        "A replica with {n} rows returns {shown} numbers, and device 0 must hold the "
        "numbers of all replicas, although two are enough."
    ),
    (
        "loss",
        "bytes",
        "no gradient",
    ): "Backward finds no way from the loss to the scores, so use neither .item() nor .detach().",
    (
        "loss",
        "bytes",
        "other",
    ): (
        "A replica must return tensors with at most 2 numbers in all, and the loss must depend "
        "on them."
    ),
}

HINTS: Hints = {  # {name: (where to look, nearly the code)}
    "03-scatter": (
        (
            "There are four cases (a tensor, a tuple or list, a dict, anything else), and the "
            "function calls itself for what is inside. What turns one list for each member into "
            "one item for each replica, and stops where the shortest ends?"
        ),
        (
            "For a tensor, take [piece.to(device) for piece, device in "
            "zip(value.chunk(len(devices)), devices)]. For a tuple or list that is not empty, "
            "scatter each item, so that zip(*...) puts together what belongs to replica 0, to "
            "replica 1, and so on, and stops with the shortest. For a dict, do the same with its "
            "values, and dict(zip(value, one)) brings the keys back. For anything else, take "
            "[value] * len(devices)."
        ),
    ),
    "03-gather": (
        (
            "The first replica's output shows which case it is. Two things are easily forgotten, "
            "namely that a tensor without dimensions cannot be joined along its rows, and that "
            "what is refused must be refused at every depth."
        ),
        (
            "For tensors, use torch.stack if they have no dimensions, otherwise torch.cat, of "
            "one.to(device) for each. For None, return None. For dicts, check that all have the "
            "same set of keys, and then use gather([one[key] for one in outputs], device) for each "
            "key. For a tuple or list, use zip(*outputs). For anything else, raise TypeError."
        ),
    ),
    "03-replicate": (
        (
            "A deep copy keeps the structure, including ties, because it copies each object once, "
            "but its leaves are unconnected. An operation makes a connected copy. How can you tell "
            "the deep copy which copies to take for the parameters and buffers?"
        ),
        (
            "copy.deepcopy(module, memo) does not copy what it finds in memo, which is a dict "
            "{id(original): copy}, but takes that copy instead. Therefore, fill the memo for each "
            "replica with one connected copy of each parameter, p.to(device, copy=True), and with "
            "one copy of each buffer, which for replica 0 is a view that shares memory, "
            "t.view_as(t)."
        ),
    ),
    "03-apply": (
        (
            "Ask for the caller's modes before the threads start, because it is too late inside "
            "them. Each thread writes its result, or its error, to its own place. The caller looks "
            "only when all have ended."
        ),
        (
            "Before the threads start, take kind = torch.device(devices[0]).type, "
            "torch.is_grad_enabled(), torch.is_autocast_enabled(kind) and "
            "torch.get_autocast_dtype(kind). In the thread, write `with "
            "torch.set_grad_enabled(grad), torch.autocast(kind, dtype=dtype, enabled=on):`, and in "
            "it try, results[i] = ..., except Exception as error, errors[i] = error. Start all, "
            "join all, and then look into errors."
        ),
    ),
    "03-forward": (
        (
            "If inputs and kwargs are cut separately, they can give different numbers of pieces. "
            "Which single value holds both, and how many replicas are then needed?"
        ),
        (
            "scatter((inputs, kwargs), devices) cuts both together and gives a list of pairs, so "
            "make as many replicas as there are pairs. Then call parallel_apply with the first and "
            "the second halves of the pairs, and gather."
        ),
    ),
    "03-loss": (
        (
            "The mean over all rows cannot be made from means alone, because pieces have different "
            "sizes. Which two numbers of each piece add up?"
        ),
        (
            "In loss_part, take cross_entropy(scores, labels, reduction='sum') and the number of "
            "rows, as two tensors without dimensions (scores.new_tensor(float(len(labels)))). "
            "After the gather, each of them is a vector with one number for each replica. In "
            "whole_loss, divide the sum of the first by the sum of the second."
        ),
    ),
}
