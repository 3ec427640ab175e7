"""The words of unit 03's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "scatter": {
        "rows": (1, "tensors are cut as torch.chunk cuts, also where that gives fewer pieces than devices"),
        "nested": (2, "tuples, lists and dicts keep their type at every depth; what is no tensor goes to all replicas, and the fewest pieces decide"),
        "devices": (1, "each piece lies on its device"),
        "gradient": (1, "the gradient of the pieces arrives in the tensor that was cut"),
    },
    "gather": {
        "tensors": (1, "the rows of all replicas in their order, on the device that is asked for"),
        "nested": (1, "tuples, lists, dicts and None at every depth; other keys are a ValueError, what is no tensor a TypeError"),
        "scalars": (1, "a number from each replica becomes a vector"),
        "gradient": (1, "the gradient of what was gathered arrives in the outputs of each replica"),
    },
    "replicate": {
        "copies": (1, "modules of their own that compute the same, each on its device; the original is as it was"),
        "gradients": (2, "the gradients of all replicas add up in the original, for tied weights too; a frozen weight has none"),
        "buffers": (1, "replica 0 shares its buffers with the original, the others have copies"),
        "tied": (1, "a weight that two layers share is one tensor in each replica"),
    },
    "apply": {
        "threads": (1, "all replicas are under way at the same time, in threads"),
        "results": (1, "the results stand in the order of the replicas, each with its own arguments"),
        "modes": (1, "no_grad and autocast, with its dtype, hold in the threads as in the caller"),
        "errors": (1, "an exception in a replica is raised in the caller, with the replica's number; of several, the first replica's"),
    },
    "forward": {
        "outputs": (1, "the outputs of the replicas, gathered: odd batches, nested inputs, fewer rows than replicas need"),
        "gradients": (1, "the gradients of one process, in the original, and added up over two steps"),
        "statistics": (1, "batch norm: each replica normalises its own rows, and the statistics of replica 0 stay, as with nn.DataParallel"),
        "gpus": (1, "outputs, gradients and buffers are those of nn.DataParallel itself, on real GPUs"),
    },
    "loss": {
        "mean": (1, "the loss and its gradient are those of the mean over all rows, for uneven pieces"),
        "bytes": (1, "a replica hands back two numbers at most"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "raised": "{name} raised {error}",
    "gpus": "this needs two GPUs or more",
    "known": {
        "index out of range": "There can be fewer pieces than devices: the number of pieces decides how many replicas there are, not the number of devices.",
        "zero-dimensional tensor": "A tensor without dimensions has no rows to join: stack such numbers to a vector.",
        "stack expects each tensor to be equal size": "The replicas' pieces differ in size: join rows (torch.cat), do not stack them.",
        "Cannot copy out of meta": "Move each piece to its own device, and nothing back.",
        "Expected all tensors to be on the same device": "Something was left on another device: parameters and buffers, both.",
        "Only Tensors created explicitly by the user": "deepcopy copies leaves only. Hand it the copies in its memo: {id(original): copy}.",
        "cannot assign": "A Parameter is a leaf of its own. Put the connected copy in its place as a plain tensor: delattr first, or through `_parameters`.",
        "missing 1 required positional argument": "A replica was called without its inputs: cut positional and keyword arguments together, so that both give "
                                                  "the same "
                                                  "number of pieces.",
        "required keyword-only argument": "A replica was called without its keyword arguments: replicas[i](*inputs[i], **kwargs[i]).",
        "must match the size of tensor": "Pieces of different lengths meet in a replica: cut positional and keyword arguments together, every tensor in them.",
        "BrokenBarrierError": "The replicas were not all under way at the same time: start all threads before you wait for the first one.",
        "can't optimize a non-leaf": "The parameters of the original must stay what they are.",
    },
    # scatter
    ("scatter", "rows", "balanced"): "{n} rows on {k} devices were shared out as evenly as possible. torch.chunk rounds up: pieces of ceil({n} / {k}) rows "
                                     "until none are left.",
    ("scatter", "rows", "empty"): "{n} rows on {k} devices give fewer pieces than devices. Leave empty pieces out: a replica without rows is not called at "
                                  "all.",
    ("scatter", "rows", "dropped"): "Rows are lost: {n} // {k} leaves a rest. Round up.",
    ("scatter", "rows", "rest to the last"): "The last piece has the rest of {n} / {k}, and all others wait for it. Round up.",
    ("scatter", "rows", "dealt"): "The rows are dealt out like cards. Neighbours stay together, or the outputs come back in another order.",
    ("scatter", "rows", "whole"): "Each replica has all the rows: {k} times the work. Cut the tensor.",
    ("scatter", "rows", "other"): "{n} rows on {k} devices: one piece for each replica, cut as torch.chunk cuts.",
    ("scatter", "nested", "not opened"): "A container inside a container goes to every replica whole. Scatter what is in it in the same way, at every depth.",
    ("scatter", "nested", "empty"): "No item at all: an empty container goes to all replicas as it is, and zip() of nothing ends at once.",
    ("scatter", "nested", "copied"): "What is no tensor goes to all replicas as it is, the same object: you have made copies.",
    ("scatter", "nested", "lists cut"): "A list of words is no tensor: every replica gets all of it. Only tensors are cut.",
    ("scatter", "nested", "types"): "The types have changed: a tuple must stay a tuple, a list a list and a dict a dict.",
    ("scatter", "nested", "other"): "For {n} rows on {k} devices, {pieces} items are right, with as many rows each as torch.chunk gives them. Each looks like the value, with a piece in the place of each "
                                    "tensor.",
    ("scatter", "devices", "not moved"): "The pieces were cut and not moved: piece i belongs on devices[i].",
    ("scatter", "devices", "all on the first"): "All pieces are on the first device.",
    ("scatter", "devices", "other"): "Piece i belongs on devices[i], at every depth of the value.",
    ("scatter", "gradient", "detached"): "No gradient arrives: the pieces are cut off from the tensor. No detach, no .data, no new tensor from numbers.",
    ("scatter", "gradient", "other"): "The gradient of the pieces is not that of the tensor's rows.",
    # gather
    ("gather", "tensors", "a list"): "The outputs are still one piece for each replica. Join their rows.",
    ("gather", "tensors", "reversed"): "The replicas stand in the wrong order.",
    ("gather", "tensors", "first"): "Only the first replica's rows are there.",
    ("gather", "tensors", "not moved"): "The result is not on the device that was asked for: move the outputs there.",
    ("gather", "tensors", "other"): "Join the rows of all replicas in their order, and give one tensor back.",
    ("gather", "nested", "by position"): "Values of dicts were matched by their place. The replicas need not have their keys in the same order: go by key.",
    ("gather", "nested", "types"): "The types have changed: a tuple must stay a tuple, a list a list and a dict a dict.",
    ("gather", "nested", "a list"): "The outputs are still one for each replica: open the containers.",
    ("gather", "nested", "untouched"): "Only the first replica's outputs are there.",
    ("gather", "nested", "keys lost"): "One replica has a key that another one lacks, and nobody was told: raise a ValueError.",
    ("gather", "nested", "other", "keys"): "Replicas whose dicts have different keys: raise a ValueError.",
    ("gather", "nested", "other", "number"): "A Python number cannot be gathered: it has no rows, no device and no gradient. Raise a TypeError.",
    ("gather", "nested", "other"): "The result must look like one replica's output, with the rows of all in each tensor, and None where all have None.",
    ("gather", "scalars", "mean"): "The numbers were averaged. The caller decides what becomes of them: hand back a vector, one number for each of {k} "
                                   "replicas.",
    ("gather", "scalars", "sum"): "The numbers were added up. The caller decides what becomes of them: hand back a vector, one number for each of {k} "
                                  "replicas.",
    ("gather", "scalars", "first"): "Only the first replica's number is there.",
    ("gather", "scalars", "column"): "A vector of {k} numbers is wanted, with one dimension.",
    ("gather", "scalars", "other"): "A tensor without dimensions from each of {k} replicas: hand back a vector.",
    ("gather", "gradient", "detached"): "No gradient arrives at the replicas: the result is cut off from their outputs.",
    ("gather", "gradient", "scalars detached"): "No gradient arrives through the scalars: no torch.tensor([...]), which makes new numbers. Stack them.",
    ("gather", "gradient", "rows detached"): "No gradient arrives through the rows.",
    ("gather", "gradient", "other"): "The gradient that arrives at the replicas is not that of their rows.",
    # replicate
    ("replicate", "copies", "module changed"): "The original has changed: its parameters are no longer the same tensors. Put the copies into modules of their "
                                               "own.",
    ("replicate", "copies", "same module"): "Replicas share modules with the original, or with each other. Threads need modules of their own, at every depth.",
    ("replicate", "copies", "too few"): "There must be one replica for each device.",
    ("replicate", "copies", "not moved"): "Nothing was moved: replica i belongs on devices[i].",
    ("replicate", "copies", "buffers left"): "The buffers have stayed behind: they belong on the replica's device, as parameters do.",
    ("replicate", "copies", "other"): "Each replica computes what the original computes, on its own device.",
    ("replicate", "gradients", "none"): "The original has no gradient: the replicas' parameters are leaves of their own (deepcopy makes such). Copy each "
                                        "parameter by an operation that "
                                        "backward knows, such as p.to(device, copy=True), and not under torch.no_grad().",
    ("replicate", "gradients", "tied"): "The gradient of the tied weight is not complete: it has two names, named_parameters() tells only the first, and "
                                        "under the second one "
                                        "the replica has an unconnected copy.",
    ("replicate", "gradients", "one replica"): "Only the gradient of replica 0 has arrived: the others' parameters are not connected to the original.",
    ("replicate", "gradients", "others lost"): "The gradient of replica 0 has not arrived.",
    ("replicate", "gradients", "frozen"): "The frozen weight has a gradient now, or requires one: in the original, or in a replica.",
    ("replicate", "gradients", "other"): "The gradients in the original are not the sum over the replicas.",
    ("replicate", "buffers", "lost"): "What replica 0 has written into its buffer is lost: it must share its buffers with the original.",
    ("replicate", "buffers", "shared"): "All replicas write into one buffer, in threads at the same time. Only replica 0 shares it: on the same device, "
                                        ".to(device) makes no "
                                        "copy unless you say copy=True.",
    ("replicate", "buffers", "one copy"): "Two replicas share a buffer: each needs a copy of its own.",
    ("replicate", "buffers", "other"): "In the buffer of the original there must be what replica 0 has written, and no more.",
    ("replicate", "tied", "untied"): "A tied weight was copied once for each of its names: twice the memory. One copy for each parameter, not for each name.",
    ("replicate", "tied", "other"): "Layers that share a weight in the original share one in each replica, and no others do.",
    # parallel_apply
    ("apply", "threads", "one after the other"): "The {k} replicas were not all under way at the same time: start all threads first, one for each, and only then "
                                             "wait for them (join).",
    ("apply", "threads", "other"): "Each of {k} replicas is called once, in a thread, with its own inputs.",
    ("apply", "results", "in order of completion"): "The results stand in the order in which the threads were done. Give each its place: the number of its "
                                                    "replica.",
    ("apply", "results", "nothing"): "The results have not come back: a thread's return value goes nowhere. Let it write into a list of the caller.",
    ("apply", "results", "other"): "results[i] is what replicas[i](*inputs[i], **kwargs[i]) returns.",
    ("apply", "modes", "grad mode"): "Under {mode}, the threads still build a graph: grad mode belongs to a thread, and a new one begins with it on. Carry it "
                                     "over.",
    ("apply", "modes", "nothing"): "Under {mode}, the threads know nothing of it: grad mode and autocast belong to a thread. Carry both over.",
    ("apply", "modes", "autocast"): "Under {mode}, there is no autocast in the threads: it belongs to a thread. Carry it over.",
    ("apply", "modes", "dtype"): "Under {mode}, the threads use another dtype: it belongs to a thread too. Carry torch.get_autocast_dtype over.",
    ("apply", "modes", "other"): "Under {mode}, the threads are in another mode than the caller. Shown are grad mode, autocast, and its dtype.",
    ("apply", "errors", "swallowed"): "Replica {bad} fails with its own inputs, and the caller was told nothing: an exception ends its own thread only. Catch it there, "
                                      "raise it here.",
    ("apply", "errors", "no number"): "The caller cannot see which replica has failed: say `replica {bad}` in the text.",
    ("apply", "errors", "original lost"): "The exception of replica {bad} is lost, and with it the place where it was raised: hand it on (`raise ... from error`).",
    ("apply", "errors", "too early"): "The caller was told while a replica was still under way: wait for all threads first, then raise.",
    ("apply", "errors", "not the first"): "Several replicas have failed: replica {bad} is the first of them. Wait for all, then look in their order.",
    ("apply", "errors", "other"): "Replica {bad} has failed: raise an exception that says `replica {bad}`, and hand the original on.",
    # data_parallel
    ("forward", "outputs", "in the caller"): "The outputs are right, but no replica ran in a thread: run the replicas with your parallel_apply.",
    ("forward", "outputs", "not moved"): "The result is not on output_device: gather it there.",
    ("forward", "outputs", "a list"): "The outputs are still one for each replica: gather them.",
    ("forward", "outputs", "types"): "The outputs have another type than the module's own.",
    ("forward", "outputs", "other"): "For {n} rows on {k} devices: scatter, replicate as often as there are pieces, apply, gather.",
    ("forward", "gradients", "none"): "The original has no gradient.",
    ("forward", "gradients", "tied"): "The gradient of the tied weight is not complete.",
    ("forward", "gradients", "one replica"): "Only replica 0's gradient has arrived.",
    ("forward", "gradients", "other"): "The gradients are not those of one process.",
    ("forward", "statistics", "lost"): "Batch norm's running statistics did not change: replica 0 writes into a copy.",
    ("forward", "statistics", "shared"): "All replicas have written batch norm's running statistics, in threads at the same time.",
    ("forward", "statistics", "whole batch"): "These are the statistics of the whole batch: the module ran on all rows at once.",
    ("forward", "statistics", "last replica"): "These are the last replica's statistics. nn.DataParallel keeps those of replica 0.",
    ("forward", "statistics", "other"): "The running statistics are not those of replica 0's rows.",
    ("forward", "gpus", "other"): "nn.DataParallel gives something else on these GPUs.",
    # loss
    ("loss", "mean", "mean of means"): "This is the mean of {k} means. Pieces of {sizes} rows: a row of the small one counts more. Hand back sums and counts, "
                                       "divide once.",
    ("loss", "mean", "sum of means"): "The means of {k} replicas were added up.",
    ("loss", "mean", "sum"): "The losses were added up and not divided.",
    ("loss", "mean", "no tensor"): "One number in a tensor that knows its gradient is wanted: no .item(), no .detach().",
    ("loss", "mean", "other"): "This is not the mean of the losses of all rows.",
    ("loss", "mean", "no tensors"): "loss_part hands back one {what} or more. Only tensors can be gathered (exercise 2): make a tensor of the number.",
    ("loss", "bytes", "no tensors"): "loss_part hands back one {what} or more, where tensors are wanted.",
    ("loss", "bytes", "too much"): "A replica with {n} rows hands back {shown} numbers, and device 0 must hold those of all. Two are enough.",
    ("loss", "bytes", "no gradient"): "Backward finds no way from the loss to the scores: no .item(), no .detach().",
    ("loss", "bytes", "other"): "What a replica hands back must be tensors, at most 2 numbers in all, and the loss must depend on them.",
}

HINTS = {  # {name: (where to look, nearly the code)}
    "03-scatter": (
        "Four cases (a tensor, a tuple or list, a dict, all else), and the function calls itself for what is inside. What makes one list for each member into one "
        "item for each replica, and stops where the shortest ends?",
        "A tensor: [piece.to(device) for piece, device in zip(value.chunk(len(devices)), devices)]. A tuple or list that is not empty: scatter each item; zip(*...) "
        "then puts together what belongs to replica 0, to replica 1, ... and stops with the shortest. A dict: the same with its values; dict(zip(value, one)) "
        "brings the keys back. All else: [value] * len(devices)."),
    "03-gather": (
        "The first replica's output says which case it is. Two things are easily forgotten: a tensor without dimensions cannot be joined along its rows, and "
        "what is refused must be refused at every depth.",
        "A tensor: torch.stack if it has no dimensions, else torch.cat, of one.to(device) for each. None: None. A dict: check that all have the same set of keys, "
        "then gather([one[key] for one in outputs], device) for each key. A tuple or list: zip(*outputs). All else: raise TypeError."),
    "03-replicate": (
        "A deep copy keeps the structure, ties too, because it copies each object once; but its leaves are unconnected. An operation makes a connected copy. "
        "Can the deep copy be told which copies to take for the parameters and buffers?",
        "copy.deepcopy(module, memo) does not copy what it finds in memo, a dict {id(original): copy}: it takes that copy. So fill the memo for each replica with one "
        "connected copy of each parameter, p.to(device, copy=True), and one of each buffer; for replica 0 a view that shares memory, t.view_as(t)."),
    "03-apply": (
        "Ask for the caller's modes before the threads start: inside them it is too late. Each thread writes its result, or its error, to its own place. The caller "
        "looks only when all are done.",
        "Before the threads: kind = torch.device(devices[0]).type, torch.is_grad_enabled(), torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind). In the "
        "thread: `with torch.set_grad_enabled(grad), torch.autocast(kind, dtype=dtype, enabled=on):`, try, results[i] = ..., except Exception as error: "
        "errors[i] = error. Start all, join all, then look into errors."),
    "03-forward": (
        "If inputs and kwargs are cut apart, they can give different numbers of pieces. What is one value that holds both? And how many replicas are then needed?",
        "scatter((inputs, kwargs), devices) cuts both together: a list of pairs. As many replicas as there are pairs. Then parallel_apply with the first and the second "
        "halves of the pairs, and gather."),
    "03-loss": (
        "From means alone the mean of all cannot be made: pieces have different sizes. Which two numbers of each piece add up?",
        "part: cross_entropy(scores, labels, reduction='sum') and the number of rows, as two tensors without dimensions (scores.new_tensor(float(len(labels)))). "
        "Gathered, each of them is a vector with one number for each replica. whole: the sum of the one, divided by the sum of the other."),
}
