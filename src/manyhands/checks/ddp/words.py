"""The words of unit 06's checks: what each criterion says, the likely mistakes, and the hints."""

CRITERIA = {  # {check: {criterion: (points, what it asks for)}}
    "broadcast": {
        "parameters": (1, "trainable parameters are those of the group's first rank, in place, in groups of 4, 3 and 2"),
        "buffers": (1, "so are frozen parameters and buffers, whole numbers included"),
    },
    "buckets": {
        "cut": (1, "from the last parameter to the first, each bucket closed at bucket_bytes, frozen ones left out"),
    },
    "flight": {
        "launch": (1, "a bucket leaves as one all-reduce, and launch does not wait for it"),
        "land": (1, "every gradient is the mean over the group, a missing one counts as zeros, in groups of 4, 3 and 2"),
    },
    "hooks": {
        "mean": (1, "gradients of two steps equal one process's on the whole batch, ranks seeded differently, to 1e-5"),
        "overlap": (1, "one all-reduce per bucket, as soon as the bucket is complete, and backward waits for none"),
        "unused": (1, "a parameter that only some ranks used is averaged too, and nobody hangs"),
    },
    "no-sync": {
        "silent": (1, "no all-reduce inside no_sync, one per bucket after it, also after an error"),
        "sum": (1, "three micro-batches give the gradients of the whole batch, to 1e-5"),
    },
    "sampler": {
        "padding": (1, "all ranks get equally many samples, all samples are seen, the repeated ones come from the beginning"),
        "epochs": (1, "each epoch has its own order, the same on all ranks, and dealt out like cards"),
    },
    "bug": {
        "averaged": (1, "the gradients of every step are averaged, once"),
        "weights": (1, "all ranks end with the weights of one process that takes the same batches, each from rows of its own"),
    },
    "fine-tuning": {
        "rates": (1, "all ranks lower their rate after the same epochs, and not by the loss of one rank"),
        "layers": (1, "all ranks end with the same weights, in the first layer and in the head"),
        "labels": (1, "the weights are those of one process, in which every label counts as much as any other"),
    },
    "job": {
        "nodes": (1, "one torchrun on each node of the job, of two or more, and two ranks each"),
        "meeting": (1, "all of them meet at the first node, and each one knows its place"),
    },
}

MISTAKES = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "is not part of group": "src counts ranks of the world. In a group, name its first rank with group_src=0.",
        "is invalid group rank": "src counts ranks of the world. In a group, name its first rank with group_src=0.",
        "package's own answer": "PyTorch's DistributedSampler, and what the course has of this exercise, are closed in this check: write it yourself.",
        "leaf Variable that requires grad": "Change a parameter outside the graph: under torch.no_grad(), or through .detach().",
        "leaf variable that requires grad": "Change a parameter outside the graph: under torch.no_grad(), or through .detach().",
    },
    "group": "In a group of fewer ranks, is group=group given to every call?",
    "flight": "In a group of fewer ranks, is group=group given to every call?",
    "flight sizes": "The ranks sent flat tensors of different sizes for the same bucket. Is a parameter left out where its gradient is None? Its place in the flat tensor holds zeros on that rank.",
    # broadcast_state
    "not broadcast": "rank {rank} differs from rank {root} after construction: parameter {name} was not broadcast.",
    "buffer not broadcast": "rank {rank} differs from rank {root} after construction: {name} was not broadcast. Take frozen parameters "
                            "and model.buffers() too.",
    "not in state_dict": "rank {rank} differs from rank {root} after construction: {name} was not broadcast. A buffer registered with persistent=False "
                         "is not in state_dict(): take model.parameters() and model.buffers().",
    "averaged state": "{name} is the mean of all ranks. The first rank's values are wanted: a model that was loaded there must not be mixed "
                      "with random ones.",
    "wrong root": "{name} is not that of rank {root}, the first rank of the group.",
    "rounded state": "{name} has the values of rank {root}, but rounded: send every tensor in its own dtype, or at least in one that holds all of its digits.",
    "other flags": "broadcast_state has changed requires_grad of a parameter, or the mode (train or eval) of a module. It changes values only: leave both as they were.",
    "new objects": "The parameters are new objects: an optimiser that holds the old ones would train in vain. Copy in place.",
    "new memory": "{name} has the right numbers in new memory: whatever shares the old one, a view of it for example, still has the old numbers. Receive into the tensor itself, or "
                  "copy_ into it; `tensor.data = ...` puts other memory in its place.",
    # make_buckets
    "frozen in bucket": "A parameter that does not require a gradient, or that is not in the list, is in a bucket: its hook would never be called.",
    "empty bucket": "There is an empty bucket: open a new one only when there is a parameter to put into it.",
    "forward order": "The order is that of forward. Backward reaches the last layer first: begin with the last parameter.",
    "not every parameter": "A parameter that requires a gradient is missing, or there twice.",
    "elements not bytes": "bucket_bytes counts bytes, and you counted elements: a float32 has 4 bytes (element_size()).",
    "four bytes": "You counted 4 bytes for each number, but a float64 has 8 and a bfloat16 has 2: element_size() tells.",
    "frozen counted": "Parameters that do not require a gradient are left out, as they should be, but their bytes were counted: skip them before you count.",
    "filled exactly": "A bucket that holds {bucket_bytes} bytes exactly is full, and you put one more parameter into it: `bucket_bytes` or more, so >= and not >.",
    "order inside": "The right parameters travel together, but in another order: inside a bucket, too, from the last parameter to the first.",
    "other cut": "The cut is elsewhere: a bucket takes parameters until it holds {bucket_bytes} bytes or more, then the next one begins.",
    # launch and land
    "several messages": "The bucket was sent in pieces. Join the gradients to one flat tensor, and all-reduce that.",
    "part of bucket": "The message does not have the size of the bucket. Every parameter has its place in it, also one without a gradient.",
    "no all-reduce": "The bucket was not all-reduced, or by another way: one dist.all_reduce per bucket, and no gathering.",
    "launch does not send": "launch has returned before anything was sent, and land has sent the bucket: start the all-reduce in launch, so that it is under way while backward goes on.",
    "launch waits": "launch did not return until rank {late} had come too: give all_reduce async_op=True, and do not wait in launch.",
    "shape": "The gradient must have the shape of its parameter.",
    "no gradient": "The gradient is None. Where a rank has no gradient, zeros take its place in the sum, and the mean is written there.",
    "summed": "The gradient is {times} times too large: summed, not averaged.",
    "divided twice": "The gradient is {times} times too small: divided twice.",
    "local": "This is the rank's own gradient: it was never averaged, or the result was not copied back.",
    "local divided": "This is the rank's own gradient, divided: the sum was not copied back, or was read before work.wait().",
    "wrong world": "The sum was divided by the size of the world. Divide by that of the group, {size} here.",
    "other": "The values are neither the mean nor the sum of the ranks' gradients: look at the order of the pieces and at what is kept from "
             "an earlier step.",
    # hooks
    "start": "{name} was not the same on all ranks before the first step: start with exercise 1, its check tells more.",
    "first step": "In the first step, {name}, group of {size}:",
    "second step": "In the second step, {name}, group of {size} (is `ready` and `flying` empty again after finish?):",
    "frozen": "{name} is frozen and must stay without a gradient.",
    "sent after backward": "All buckets were sent after backward had ended: send a bucket from the hook, when it is complete.",
    "sent late": "A bucket was sent later than when its last gradient was ready.",
    "sent early": "A bucket left before all of its own gradients of this backward pass were there. Which parameters are ready counts, not how many; and is `ready` empty "
                  "again after finish?",
    "other buckets": "The messages do not have the sizes of the buckets of exercise 2: is its check green, and does each message hold one bucket?",
    "too many messages": "More than {n} all-reduces: one per bucket. Send a bucket when it is complete, and as one message.",
    "too few messages": "Fewer than {n} all-reduces were seen: one per bucket, with dist.all_reduce.",
    "backward waits": "Backward did not end until rank {late} had begun its own: a hook waits for its message. Wait in finish.",
    "spoke while silent": "All-reduces were seen while ddp.sync was False: `gradient_ready` and `finish` do nothing then.",
    "noted while silent": "In the backward pass after one with ddp.sync = False, buckets do not leave when their own gradients are complete: while ddp.sync is False, `gradient_ready` does nothing, "
                          "not even noting the parameter in `ready`; and a gradient that is not None may come from an earlier pass.",
    "one at a time": "When bucket 0 became complete, buckets behind it were complete already, and did not leave with it: launch in a loop, `while` "
                     "the next bucket in line is complete, and not only once.",
    "bucket order": "A bucket left before one in front of it. Bucket 1 must never leave before bucket 0, whichever is ready first.",
    "unused": "The gradient of {name} is wrong. Some ranks did not use it, and sent nothing: in finish, launch the buckets that are still there. (And is the check of "
              "exercise 3 green?)",
    "unused order": "A rank that skips the last layer has its second bucket ready first. Bucket 1 must never leave before bucket 0, and finish must "
                    "send what is left.",
    # no_sync
    "spoke in no_sync": "Gradients were sent inside no_sync: `gradient_ready` and `finish` must look at ddp.sync.",
    "silent after no_sync": "After no_sync, the number of all-reduces is not that of the buckets: set ddp.sync back.",
    "spoke in an inner no_sync": "Gradients were sent inside a no_sync that is nested in others, where ddp.sync must be False too. (If you toggle ddp.sync, it is True in every second block.)",
    ("no_sync", "after a block"): "ddp.sync must be False in a block, and after the block what it was before; so also in a second block after the first one.",
    ("no_sync", "in an inner block"): "ddp.sync is True inside a no_sync that is nested in another one. Set it to False in every block, however deep, and do not toggle it.",
    ("no_sync", "after an inner block"): "After an inner no_sync, the outer one must still be silent, and after the outer one ddp.sync is what it was: each block restores the value from before it, "
                                         "so each block needs its own variable for that value.",
    ("no_sync", "after an error"): "After an exception inside no_sync, ddp.sync stays False: set it back in a `finally`, which also runs after a KeyboardInterrupt.",
    ("no_sync", "error swallowed"): "An exception that was raised inside the block did not come out of it: no_sync has swallowed it, and the training would go on after an error. Use `finally`, "
                                    "without `except` or `return`.",
    ("no_sync", "another error"): "The exception that comes out of the block is not the one that was raised in it: use `finally`, and let the exception pass.",
    ("no_sync", "after an inner error"): "After an exception in an inner no_sync, which the outer one has caught, the outer one must still be silent: restore the earlier value, which need not be True.",
    ("no_sync", "left early"): "When a block is left by `return` or `break`, or with the generator that it is in, ddp.sync must be set back too: do it in a `finally`.",
    ("no_sync", "two models"): "With two models, the block of one changes the other: what is remembered belongs to one ddp and one block, so keep it in a variable of the function.",
    "noted before": "In a silent micro-batch, `ready` or `flying` was changed, so the next backward pass takes buckets for complete before their gradients are. The cause is in exercise 4: "
                    "`gradient_ready` does nothing while ddp.sync is False, not even noting the parameter in `ready`.",
    "lost accumulation": "The gradients of the silent micro-batches are lost, or were not the same on all ranks at the start.",
    # sampler
    "uneven": "The ranks have different numbers of samples: the one with more would wait for ever in the last all-reduce.",
    "too many": "All ranks have equally many samples, but too many: {n} / {world_size}, rounded up, are enough. (n // world_size + 1 is one too many where nothing is left over.)",
    "without end": "The sampler does not end: len(self) indices are wanted.",
    "dropped": "Samples were dropped. Pad instead: {n} samples on {world_size} ranks are rounded up.",
    "length": "len(sampler) is not the number of samples that it gives.",
    "not covered": "Some samples of {n} are seen by nobody.",
    "other padding": "The repeated samples are not those at the beginning of the drawn order.",
    "epoch ignored": "Epochs 0 and 1 have the same order: draw with seed + epoch.",
    "not repeatable": "The same epoch gave two orders: draw from a generator that is seeded anew, not from torch's global one.",
    "global generator": "The orders are right, but torch's global generator was used, and seeded: what the training draws after it, dropout for "
                        "example, comes from there. Draw from a torch.Generator() of your own.",
    "not twice": "A second iteration in the same epoch has a different order. Only set_epoch may change the epoch, so make and seed a new generator in each __iter__.",
    "not shuffled": "The samples are in their stored order: draw a permutation.",
    "dealt otherwise": "The right samples in the wrong hands: rank r takes places r, r + {world_size}, r + 2 * {world_size}, ...",
    "order cut off": "In epoch {epoch} the order is right, but only {k} of its {n} samples are dealt out.",
    "order goes on otherwise": "In epoch {epoch} the drawn order is right, and so are the ranks that get it. What follows is not: the order from its beginning, as "
                               "often as needed, until each rank has {per_rank}.",
    # find the bug
    "nothing averaged": "The ledger saw no all-reduce, and every rank goes its own way: who is called in the forward pass? Only DDP's own forward prepares the "
                        "backward pass for sending.",
    "other steps": "One all-reduce in each step is right, but {sent} steps were made, and {steps} are wanted: each takes 8 rows of this rank.",
    "averaged again": "{sent} all-reduces where {steps} steps need one each. DDP's backward pass has averaged already when it ends: is something averaged a second time, or backward called twice?",
    "not every step": "{sent} all-reduces where {steps} steps need one each: in every step one forward pass through ddp, and one backward pass.",
    "local rank": "Ranks 0 and 2 took the same rows, and half of the rows was never seen: LOCAL_RANK starts again at 0 on each node.",
    "one epoch": "Every epoch had the order of the first one: the sampler was never told which epoch it is.",
    "both": "Every epoch had the order of the first one, and half of the rows was never seen: look at what the sampler is told.",
    "no rows": "The loop is to return a list with the rows of each step, 8 of this rank in each.",
    "too many rows": "In step {step} this rank took rows that are not its share: 8 of its own in a step. Ranks that all compute the whole batch need no other rank, and "
                     "save no time.",
    "other rows": "In step {step}, of epoch {epoch}, the rows are not those that DistributedSampler, with its default seed, deals to this rank in that epoch. It must know the epoch before it is "
                  "asked for rows, and it shuffles.",
    "not zeroed": "The gradients of all steps have added up: empty them after each step, with optimiser.zero_grad().",
    "other rate": "The steps are 4 times too small: DDP gives the mean over the ranks already, so the rate stays 0.5.",
    "other weights": "All ranks must end with the weights of one process: 8 rows of each rank in a step, SGD with rate 0.5, the order of DistributedSampler.",
    # find the bugs of a fine-tuning
    "no rates": "The loop is to return a list with the rate after each epoch.",
    "own rates": "The ranks have lowered their rates after different epochs, because each scheduler was given the loss of its own rank. Give all of them one number that follows from the labels of all "
                 "ranks: sum with dist.all_reduce before scheduler.step.",
    "rate never lowered": "The rate was never lowered, although the loss of all ranks stops falling. Is scheduler.step called after each epoch, and does it get the loss of all ranks, or the loss of one rank, "
                          "which goes on falling?",
    "rates of one rank": "All ranks have the same rates, but these follow from the loss of rank {rank} alone, which sees a quarter of the labels. Let the scheduler decide by the loss of all ranks.",
    "late layers": "The heads are equal and the first layers are not, so the gradients of the first layer were not averaged. DistributedDataParallel puts its hooks on the parameters that require a gradient "
                   "when the constructor runs; what is unfrozen later, it does not see.",
    "layers and rates": "The ranks end with different weights. They have different rates, and then even equal gradients take them apart: repair the rates first, and look at the layers again.",
    "all layers": "The ranks end with different weights, although their rates are the same: every step of every rank must use gradients that are averaged over the ranks.",
    "ranks apart": "The ranks end with different weights, so they cannot all be those of one process: repair the other two criteria first.",
    "means": "A mean over each micro-batch lets a label of a micro-batch with one label count as much as all labels of a full one. Sum the losses, and divide by the number of labels in the step.",
    "own labels": "Each rank has divided by the number of its own labels, so a label of a rank with few labels counts more than a label of another rank. Divide by the labels of all ranks: count them with "
                  "dist.all_reduce before the first backward pass of the step.",
    "not times world": "The gradient is 4 times too small. DDP averages over the ranks: if the losses are divided by the labels of all ranks, multiply them by the number of ranks.",
    "padding counted": "The losses were divided by the number of rows, and rows without a label (-100) were counted too. Count the labels.",
    "never unfrozen": "The first layer was never trained: from epoch 1 on, its parameters require gradients, and they must take part.",
    "never frozen": "The first layer was trained in epoch 0, too. Only the head is trained in that epoch.",
    "rates by another loss": "In every step all labels count alike, but the rates are not those of one process: it gives the scheduler the mean loss of all labels of the epoch.",
    "other fine-tuning": "The ranks agree with each other and not with one process. What is the loss of a label multiplied by on its way into the averaged gradient, and is that the same number for all labels?",
    # a batch file
    "nodes asked": "The file asks for {nodes} node(s). Lines that begin with #SBATCH, before the first command, ask for two.",
    "ntasks": "Slurm gives {n} nodes no fewer than {n} tasks: with --ntasks={nodes}, `sbatch --nodes={n}` gets {nodes}. Ask for --ntasks-per-node=1, "
              "which goes with the number of nodes.",
    "no torchrun": "torchrun was not started. bash said: {said}",
    "some nodes": "torchrun was started on {k} of the {n} nodes: is a number of tasks or nodes written into the file a second time?",
    "ended before": "The file ends while what srun has started is still running (`&` without `wait`): Slurm ends the job with its file, and kills all that it has started.",
    "options last": "The options of torchrun stand before the script: what follows the script is handed to it.",
    "first node only": "torchrun was not started on each of the {n} nodes: the file itself runs on the first node only; srun starts a command on all.",
    "nobody to meet": "The meeting waits for {n} torchruns, and {calls} came.",
    "several on a node": "{n} torchruns were started on each node: one is enough, it starts the ranks. Ask for one task on each node.",
    "nnodes": "torchrun was told --nnodes {told} in a job of {n} nodes. `sbatch --nodes={n}` changes the number: SLURM_NNODES has it.",
    "nproc": "Two ranks on each node are wanted: --nproc-per-node 2, not {told}.",
    "script": "torchrun was to start {wanted!r}, and not {told!r}.",
    "no node rank": "torchrun was not told which node it is on: without --node-rank each takes itself for node 0. (With --rdzv-backend c10d the meeting deals out "
                    "the places.)",
    "expanded early": "Every node was told --node-rank 0. If the file says $SLURM_NODEID: the batch shell put in the value before srun started anything. Single "
                      "quotes around the command of `srun bash -c` leave it to the node. (SLURM_LOCALID is another number: 0 on each node.)",
    "node rank": "The node ranks are not 0, 1, ... in the order of the nodes: SLURM_NODEID has the number.",
    "local address": "Each node would wait for the others at its own address. It must be that of the first node, on all nodes: MASTER_ADDR.",
    "address": "All must meet at {first}, the first node, whose address is in MASTER_ADDR.",
    "port": "The port must be a number, the same on all nodes: MASTER_PORT.",
    "other order": "In epoch {epoch} the order is not torch.randperm({n}) under a generator seeded with seed + epoch.",
}

HINTS = {  # where to look, then nearly the code
    "06-broadcast": (
        "A model holds three kinds of tensors: trained, frozen, and buffers. model.named_parameters() and model.named_buffers() show you all of them. Which call "
        "gives the tensor of one rank to the others, and how does it name a rank of a group?",
        "A loop over [*model.parameters(), *model.buffers()]. dist.broadcast writes into the tensor that it is given; give it tensor.detach(), which shares the "
        "memory and stands outside the graph. group_src=0 is the first rank of a group."),
    "06-buckets": (
        "Two numbers change as you go: the list of the open bucket, and how many bytes it holds. Ask before you put a parameter in, not after: is there a bucket, "
        "and has it still room? And how many bytes has one number of this tensor?",
        "Go through reversed(list(parameters)) and skip what does not require a gradient. Open a new bucket when there is none yet, or "
        "when the last one holds bucket_bytes or more. Bytes of a tensor: numel() * element_size()."),
    "06-flight": (
        "launch makes a new tensor that holds all gradients one behind the other; land needs that tensor and the work, so return both. What takes the place of a "
        "gradient that is None, and how long must it be?",
        "torch.cat joins flattened gradients; p.new_zeros(p.numel()) stands for a missing one. dist.all_reduce(flat, group=group, "
        "async_op=True) returns a work. In land: work.wait(), divide by dist.get_world_size(group), flat.split([p.numel() for p in bucket]), view_as."),
    "06-hooks": (
        "Write down for three buckets which of them leave when the gradients of the third come first, then those of the second, then those of the first. How many "
        "leave at that last moment? And what must be empty before the next step?",
        "The next bucket to send has the number len(ddp.flying). While there is one and all its parameters are in ddp.ready, launch it. "
        "finish launches what is left, lands all in order, and empties ready and flying."),
    "06-no-sync": (
        "Only ddp.sync changes. What was it before the block: always True? And which statement of Python runs its lines after an exception too?",
        "Under @contextmanager: remember ddp.sync, set it to False, yield in a `try`, and set back what you remembered in `finally`."),
    "06-sampler": (
        "First the number of samples of a rank, the same for all; from it the length of the padded list. Then: draw an order of n, repeat it until it is long "
        "enough, cut it, and take every world_size-th.",
        "math.ceil(n / world_size) samples for each rank. order = torch.randperm(n, generator=...).tolist(); repeat it until it is long "
        "enough, cut it at the total, and take order[rank::world_size]. The generator: torch.Generator().manual_seed(seed + epoch)."),
    "06-bug": (
        "Compare the lines of two ranks with each other, for every pair of ranks. Then compare the steps of the first epoch with the steps of the second one. At last compare the number of messages "
        "with the number of steps.",
        "One fault concerns which way the data takes into the network, one which of its two numbers a rank gives to the sampler, and one what the sampler has to know before it is asked again."),
    "06-fine-tuning": (
        "Compare the two layers. Different rates alone take ranks apart a little, but which layer is much further apart than the other one, and what happens to it between epochs 0 and 1? For the fault that the "
        "evidence does not show, compare with one process: follow the loss of one label into the averaged gradient, from a micro-batch with two labels and from one with eight.",
        "There is one fault in each of three places: when the model was wrapped, and what required a gradient then; by whose loss the rate is lowered; and what a sum of losses is divided by. In all three, "
        "a rank does by itself what all ranks must do together."),
    "06-job": (
        "Who reads which line? sbatch reads #SBATCH; the batch shell runs the rest, on the first node only; srun starts its command once for each task, where "
        "SLURM_NODEID tells the node. So the node must fill in its own number.",
        "#SBATCH --nodes=2 and --ntasks-per-node=1. Then: srun bash -c 'torchrun --nnodes \"$SLURM_NNODES\" --node-rank \"$SLURM_NODEID\" --nproc-per-node 2 "
        "--master-addr \"$MASTER_ADDR\" --master-port \"$MASTER_PORT\" ...', in single quotes. Or one srun torchrun with --rdzv-backend c10d and "
        "--rdzv-endpoint: then no node needs a number."),
}
