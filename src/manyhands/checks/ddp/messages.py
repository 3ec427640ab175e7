"""The messages of unit 06's checks: what each criterion asks for, the mistakes, and the hints.

Those of the sampler are in `sampler_criteria`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.checks.ddp.sampler_criteria import SAMPLER_CRITERIA, SAMPLER_MISTAKES

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, what it asks for)}}
    "broadcast": {
        "parameters": (
            1,
            (
                "every rank has the trainable parameters of the group's first rank, in place, in "
                "groups of 4, 3 and 2"
            ),
        ),
        "buffers": (1, "the same holds for frozen parameters and buffers, whole numbers included"),
    },
    "buckets": {
        "cut": (
            1,
            (
                "buckets go from the last parameter to the first, each is closed at bucket_bytes, "
                "and frozen parameters are left out"
            ),
        ),
    },
    "flight": {
        "launch": (1, "a bucket leaves as one all-reduce, and launch does not wait for it"),
        "land": (
            1,
            (
                "every gradient is the mean over the group, in groups of 4, 3 and 2, and a missing "
                "gradient counts as zeros"
            ),
        ),
    },
    "hooks": {
        "mean": (
            1,
            (
                "the gradients of two steps equal what a single process computes from the whole "
                "batch, to 1e-5, although ranks are seeded differently"
            ),
        ),
        "overlap": (
            1,
            (
                "each bucket leaves as one all-reduce as soon as it is complete, and backward waits"
                " for none of them"
            ),
        ),
        "unused": (1, "a parameter that only some ranks used is averaged too, and no rank hangs"),
    },
    "no-sync": {
        "silent": (
            1,
            (
                "no all-reduce is sent inside no_sync, and one per bucket after it, even after an "
                "error"
            ),
        ),
        "sum": (1, "three micro-batches give the gradients of the whole batch, to 1e-5"),
    },
    "sampler": SAMPLER_CRITERIA,
    "bug": {
        "averaged": (1, "the gradients of every step are averaged exactly once"),
        "weights": (
            1,
            (
                "all ranks end with the weights that a single process computes from the same "
                "batches, and each rank trains on different rows"
            ),
        ),
    },
    "fine-tuning": {
        "rates": (
            1,
            (
                "all ranks lower their learning rate after the same epochs, and not by the loss of "
                "one rank"
            ),
        ),
        "layers": (1, "all ranks end with the same weights, in the first layer and in the head"),
        "labels": (
            1,
            (
                "the weights are those that a single process computes, in which every label counts "
                "equally; a micro-batch may have no label"
            ),
        ),
    },
    "job": {
        "nodes": (
            1,
            (
                "one torchrun starts on each node of the job, for two or more nodes, with two ranks"
                " each"
            ),
        ),
        "meeting": (1, "all of them meet at the first node, and each one knows its node rank"),
    },
}

MISTAKES: Mistakes = {
    "unwritten": "{name} is not written yet.",
    "known": {
        "is not part of group": (
            "src is a rank of the world. To name the first rank of a group, use group_src=0."
        ),
        "is invalid group rank": (
            "src is a rank of the world. To name the first rank of a group, use group_src=0."
        ),
        "package's own answer": (
            "PyTorch's DistributedSampler and the course's own solution of this exercise are closed"
            " in this check, so write the sampler yourself."
        ),
        "leaf Variable that requires grad": (
            "Change a parameter outside the graph, either under torch.no_grad() or through "
            ".detach()."
        ),
        "leaf variable that requires grad": (
            "Change a parameter outside the graph, either under torch.no_grad() or through "
            ".detach()."
        ),
    },
    "group": "The call failed in a group of fewer ranks. Is group=group given to every call?",
    "flight": "The call failed in a group of fewer ranks. Is group=group given to every call?",
    "flight sizes": (
        "The ranks sent flat tensors of different sizes for the same bucket. Is a parameter left "
        "out where its gradient is None? Zeros must take its place in the flat tensor on that "
        "rank."
    ),
    # broadcast_state
    "not broadcast": (
        "rank {rank} differs from rank {root} after construction, because parameter {name} was not "
        "broadcast."
    ),
    "buffer not broadcast": (
        "rank {rank} differs from rank {root} after construction, because {name} was not broadcast."
        " Broadcast frozen parameters and model.buffers() too."
    ),
    "not in state_dict": (
        "rank {rank} differs from rank {root} after construction, because {name} was not broadcast."
        " A buffer registered with persistent=False is not in state_dict(), so use "
        "model.parameters() and model.buffers()."
    ),
    "averaged state": (
        "{name} is the mean of all ranks, but it should have the first rank's values. A model that "
        "was loaded there must not be mixed with random ones."
    ),
    "wrong root": "{name} is not the one of rank {root}, the first rank of the group.",
    "rounded state": (
        "{name} has the values of rank {root}, but they are rounded. Send every tensor in its own "
        "dtype, or at least in a dtype that holds all of its digits."
    ),
    "other flags": (
        "broadcast_state has changed requires_grad of a parameter, or the mode (train or eval) of a"
        " module. It must change only values, so leave both as they were."
    ),
    "new objects": (
        "The parameters are new objects, so an optimiser that holds the old ones would train in "
        "vain. Copy the values in place."
    ),
    "new memory": (
        "{name} has the right numbers in new memory, so whatever shares the old memory (a view of "
        "it, for example) still has the old numbers. Receive into the tensor itself, or use copy_ "
        "on it, since `tensor.data = ...` replaces the memory."
    ),
    # make_buckets
    "frozen in bucket": (
        "A parameter that does not require a gradient, or that is not in the list, is in a bucket. "
        "Its hook would never be called."
    ),
    "empty bucket": (
        "There is an empty bucket. Open a new one only when there is a parameter to put into it."
    ),
    "forward order": (
        "The parameters are in the order of the forward pass. Backward reaches the last layer "
        "first, so begin with the last parameter."
    ),
    "not every parameter": "A parameter that requires a gradient is missing or appears twice.",
    "elements not bytes": (
        "bucket_bytes counts bytes, but you counted elements, and a float32 has 4 bytes "
        "(element_size())."
    ),
    "four bytes": (
        "You counted 4 bytes for each number, but a float64 has 8 and a bfloat16 has 2. Use "
        "element_size()."
    ),
    "frozen counted": (
        "Parameters that do not require a gradient are left out, as they should be, but their bytes"
        " were counted. Skip them before you count."
    ),
    "filled exactly": (
        "A bucket that holds exactly {bucket_bytes} bytes is full, but you put one more parameter "
        "into it. The rule is `bucket_bytes` or more, so >= and not >."
    ),
    "order inside": (
        "The right parameters are together, but in a different order. Inside a bucket, too, the "
        "order goes from the last parameter to the first."
    ),
    "other cut": (
        "The buckets are cut at different places. A bucket takes parameters until it holds "
        "{bucket_bytes} bytes or more, and then the next one begins."
    ),
    # launch and land
    "several messages": (
        "The bucket was sent in pieces. Join its gradients into one flat tensor, and all-reduce "
        "that tensor."
    ),
    "part of bucket": (
        "The message does not have the size of the bucket. Every parameter has its place in it, "
        "even a parameter without a gradient."
    ),
    "no all-reduce": (
        "The bucket was not all-reduced, or it was combined in a different way. Use one "
        "dist.all_reduce per bucket and no gathering."
    ),
    "launch does not send": (
        "launch returned before anything was sent, and land has sent the bucket. Start the "
        "all-reduce in launch, so that it is under way while backward goes on."
    ),
    "launch waits": (
        "launch did not return until rank {late} had reached it too. To avoid this, give all_reduce"
        " async_op=True and do not wait in launch."
    ),
    "shape": "The gradient must have the shape of its parameter.",
    "no gradient": (
        "The gradient is None. If a rank has no gradient, zeros take its place in the sum, and the "
        "mean is then written to that parameter as well."
    ),
    "summed": (
        "The gradient is too large by a factor of {times}, because it was summed but not averaged."
    ),
    "divided twice": (
        "The gradient is too small by a factor of {times}, because it was divided twice."
    ),
    "local": (
        "This is the rank's own gradient. Either it was never averaged, or the result was not "
        "copied back."
    ),
    "local divided": (
        "This is the rank's own gradient after a division. Either the sum was not copied back, or "
        "it was read before work.wait()."
    ),
    "wrong world": (
        "The sum was divided by the size of the world. Divide it by the size of the group, which is"
        " {size} here."
    ),
    "other": (
        "The values are neither the mean nor the sum of the ranks' gradients. Check the order of "
        "the pieces, and what is kept from an earlier step."
    ),
    # hooks
    "start": (
        "{name} was not the same on all ranks before the first step. Start with exercise 1, whose "
        "check tells you more."
    ),
    "first step": "In the first step, {name}, group of {size}:",
    "second step": (
        "In the second step, {name}, group of {size} (are `ready` and `flying` empty again after "
        "finish?):"
    ),
    "frozen": "{name} is frozen and must stay without a gradient.",
    "sent after backward": (
        "All buckets were sent after backward had ended. Send each bucket from the hook as soon as "
        "it is complete."
    ),
    "sent late": "A bucket was sent later than the moment when its last gradient was ready.",
    "sent early": (
        "A bucket left before all of its own gradients of this backward pass were ready. What "
        "matters is which parameters are ready, and not how many. Is `ready` empty again after "
        "finish?"
    ),
    "other buckets": (
        "The messages do not have the sizes of the buckets of exercise 2. Does its check pass, and "
        "does each message hold one bucket?"
    ),
    "too many messages": (
        "There were more than {n} all-reduces, which is one per bucket. Send a bucket only when it "
        "is complete, and as one message."
    ),
    "too few messages": (
        "There were fewer than {n} all-reduces, which is one per bucket. Send every bucket with "
        "dist.all_reduce."
    ),
    "backward waits": (
        "Backward did not end until rank {late} had begun its own, because a hook waits for its "
        "message. Wait in finish instead."
    ),
    "spoke while silent": (
        "All-reduces were seen while ddp.sync was False. `gradient_ready` and `finish` must do "
        "nothing in that case."
    ),
    "noted while silent": (
        "In the backward pass after one with ddp.sync = False, buckets do not leave when their own "
        "gradients are complete. While ddp.sync is False, `gradient_ready` must do nothing, not "
        "even note the parameter in `ready`. Moreover, a gradient that is not None may come from "
        "an earlier pass."
    ),
    "one at a time": (
        "When bucket 0 became complete, buckets behind it were already complete, but they did not "
        "leave with it. Launch in a loop, `while` the next bucket in line is complete, and not "
        "only once."
    ),
    "bucket order": (
        "A bucket left before one in front of it. Bucket 1 must never leave before bucket 0, "
        "whichever is ready first."
    ),
    "unused": (
        "The gradient of {name} is wrong. Some ranks did not use this parameter and sent nothing "
        "for it, so finish must launch the buckets that are left. (Does the check of exercise 3 "
        "pass?)"
    ),
    "unused order": (
        "A rank that skips the last layer has its second bucket ready first. Since bucket 1 must "
        "never leave before bucket 0, finish must send what is left."
    ),
    # no_sync
    "spoke in no_sync": (
        "Gradients were sent inside no_sync. `gradient_ready` and `finish` must look at ddp.sync."
    ),
    "silent after no_sync": (
        "After no_sync, the number of all-reduces differs from the number of buckets. Did you set "
        "ddp.sync back?"
    ),
    "spoke in an inner no_sync": (
        "Gradients were sent inside a no_sync that is nested in others, where ddp.sync must be "
        "False too. (If you toggle ddp.sync, it is True in every second block.)"
    ),
    (
        "no_sync",
        "after a block",
    ): (
        "ddp.sync must be False in a block, and after the block it must have its earlier value. The"
        " same holds for a second block after the first one."
    ),
    (
        "no_sync",
        "in an inner block",
    ): (
        "ddp.sync is True inside a no_sync that is nested in another one. Set it to False in every "
        "block, however deep, and do not toggle it."
    ),
    (
        "no_sync",
        "after an inner block",
    ): (
        "After an inner no_sync, the outer one must still be silent, and after the outer one "
        "ddp.sync must have its earlier value. Each block restores the value from before it, so "
        "each block needs its own variable for that value."
    ),
    (
        "no_sync",
        "after an error",
    ): (
        "After an exception inside no_sync, ddp.sync stays False. Set it back in a `finally`, which"
        " also runs after a KeyboardInterrupt."
    ),
    (
        "no_sync",
        "error swallowed",
    ): (
        "An exception that was raised inside the block did not leave it, because no_sync has "
        "swallowed it. Training would go on after an error. Use `finally`, without `except` or "
        "`return`."
    ),
    (
        "no_sync",
        "another error",
    ): (
        "The exception that leaves the block is not the one that was raised in it. Use `finally`, "
        "and let the exception pass."
    ),
    (
        "no_sync",
        "after an inner error",
    ): (
        "After an exception in an inner no_sync, which the outer one has caught, the outer one must"
        " still be silent. Restore the earlier value, which need not be True."
    ),
    (
        "no_sync",
        "left early",
    ): (
        "When a block is left by `return` or `break`, or together with the generator that contains "
        "it, ddp.sync must be set back too. Do this in a `finally`."
    ),
    (
        "no_sync",
        "two models",
    ): (
        "With two models, the block of one changes the other. What you remember belongs to one ddp "
        "and one block, so keep it in a variable of the function."
    ),
    "noted before": (
        "In a silent micro-batch, `ready` or `flying` was changed, so the next backward pass treats"
        " buckets as complete before their gradients are. The cause is in exercise 4. While "
        "ddp.sync is False, `gradient_ready` must do nothing, not even note the parameter in "
        "`ready`."
    ),
    "lost accumulation": (
        "The gradients of the silent micro-batches are lost, or were not the same on all ranks at "
        "the start."
    ),
    **SAMPLER_MISTAKES,
    # find the bug
    "nothing averaged": (
        "The ledger saw no all-reduce, so every rank trains alone. Which object is called in the "
        "forward pass? Only DDP's own forward prepares the backward pass for sending."
    ),
    "other steps": (
        "One all-reduce in each step is right, but {sent} steps were made instead of {steps}. In "
        "each step, this rank takes 8 rows."
    ),
    "averaged again": (
        "There were {sent} all-reduces, although {steps} steps need only one each. DDP's backward "
        "pass has already averaged when it ends, so is something averaged a second time, or is "
        "backward called twice?"
    ),
    "not every step": (
        "There were {sent} all-reduces, although {steps} steps need one each. Every step needs one "
        "forward pass through ddp and one backward pass."
    ),
    "local rank": (
        "Ranks 0 and 2 took the same rows, and half of the rows were never seen, because LOCAL_RANK"
        " starts again at 0 on each node."
    ),
    "one epoch": (
        "Every epoch had the order of the first one, because the sampler was never told which epoch"
        " it is."
    ),
    "both": (
        "Every epoch had the order of the first one, and half of the rows were never seen. Look at "
        "the numbers that the sampler is given."
    ),
    "no rows": (
        "The loop must return a list with the rows of each step, which are 8 of this rank's rows."
    ),
    "too many rows": (
        "In step {step} this rank took rows that are not in its share, which is 8 rows in each "
        "step. Ranks that all compute the whole batch need no other rank, and they save no time."
    ),
    "other rows": (
        "In step {step} of epoch {epoch}, the rows are not the ones that DistributedSampler, with "
        "its default seed, gives this rank in that epoch. It must know the epoch before it is "
        "asked for rows, and it must shuffle."
    ),
    "not zeroed": (
        "The gradients of all steps have added up. Reset them after each step with "
        "optimiser.zero_grad()."
    ),
    "other rate": (
        "The steps are too small by a factor of 4. DDP already gives the mean over the ranks, so "
        "the learning rate must stay 0.5."
    ),
    "other weights": (
        "All ranks must end with the weights that a single process computes with 8 rows of each "
        "rank in a step, SGD with a learning rate of 0.5, and the order of DistributedSampler."
    ),
    # find the bugs of a fine-tuning
    "no rates": "The loop must return a list with the learning rate after each epoch.",
    "own rates": (
        "The ranks have lowered their rates after different epochs, because each scheduler was "
        "given the loss of its own rank. Give all of them one number that follows from the labels "
        "of all ranks, by summing with dist.all_reduce before scheduler.step."
    ),
    "rate never lowered": (
        "The learning rate was never lowered, although the loss of all ranks stops falling. Is "
        "scheduler.step called after each epoch, and does it get the loss of all ranks, or the "
        "loss of one rank, which goes on falling?"
    ),
    "rates of one rank": (
        "All ranks have the same learning rates, but these follow from the loss of rank {rank} "
        "alone, which sees a quarter of the labels. Let the scheduler decide by the loss of all "
        "ranks."
    ),
    "late layers": (
        "The heads are equal but the first layers are not, so the gradients of the first layer were"
        " not averaged. When its constructor runs, DistributedDataParallel puts hooks on the "
        "parameters that require a gradient at that moment, and what is unfrozen later, it does "
        "not see."
    ),
    "layers and rates": (
        "The ranks end with different weights. Since their learning rates differ, even equal "
        "gradients lead to different weights. Repair the rates first, and then look at the layers "
        "again."
    ),
    "all layers": (
        "The ranks end with different weights, although their learning rates are the same. Every "
        "step of every rank must use gradients that are averaged over the ranks."
    ),
    "ranks apart": (
        "The ranks end with different weights, so not all of them can match a single process. "
        "Repair the criterion above first."
    ),
    "no label": (
        "The weights are right as long as each micro-batch has a label, but a micro-batch may have "
        "none. Its mean loss is 0 / 0, which is not a number and spoils the loss of the epoch. The "
        "sum of its losses is 0, so use the sum."
    ),
    "means": (
        "A mean over each micro-batch lets a label of a micro-batch with one label count as much as"
        " all labels of a full one. Instead, sum the losses, and divide by the number of labels in "
        "the step."
    ),
    "own labels": (
        "Each rank has divided by the number of its own labels, so a label of a rank with few "
        "labels counts more than a label of another rank. Divide by the labels of all ranks, which "
        "you can count with dist.all_reduce before the first backward pass of the step."
    ),
    "not times world": (
        "The gradient is too small by a factor of 4. DDP averages over the ranks, so if the losses "
        "are divided by the labels of all ranks, multiply them by the number of ranks."
    ),
    "padding counted": (
        "The losses were divided by the number of rows, but rows without a label (-100) were "
        "counted too. Count only the labels."
    ),
    "never unfrozen": (
        "The first layer was never trained. From epoch 1 on, its parameters require gradients and "
        "must take part."
    ),
    "never frozen": (
        "The first layer was already trained in epoch 0, although only the head is trained in that "
        "epoch."
    ),
    "rates by another loss": (
        "In every step, all labels count equally, but the learning rates differ from those of a "
        "single process, which gives the scheduler the mean loss of all labels of the epoch."
    ),
    "other fine-tuning": (
        "The ranks agree with each other, but not with a single process. By what is the loss of a "
        "label multiplied on its way into the averaged gradient, and is this factor the same for "
        "all labels?"
    ),
    # a batch file
    "nodes asked": (
        "The file asks for {nodes} node(s), but it should ask for two. Use lines that begin with "
        "#SBATCH, before the first command."
    ),
    "ntasks": (
        "Slurm gives {n} nodes no fewer than {n} tasks, so with --ntasks={nodes}, `sbatch "
        "--nodes={n}` gets {nodes}. Ask for --ntasks-per-node=1, which follows the number of "
        "nodes."
    ),
    "no torchrun": "torchrun was not started. bash said: {said}",
    "some nodes": (
        "torchrun was started on {k} of the {n} nodes. Is a number of tasks or nodes written into "
        "the file a second time?"
    ),
    "ended before": (
        "The file ends while what srun has started is still running (`&` without `wait`). Slurm "
        "ends the job with its file, and kills everything that the job has started."
    ),
    "options last": (
        "The options of torchrun must be before the script, because whatever follows the script is "
        "passed to the script."
    ),
    "first node only": (
        "torchrun was not started on each of the {n} nodes. The file itself runs on the first node "
        "only, while srun starts a command on all."
    ),
    "nobody to meet": "The rendezvous waits for {n} torchruns, but only {calls} joined.",
    "several on a node": (
        "{n} torchruns were started on each node, but one is enough, since it starts the ranks. Ask"
        " for one task on each node."
    ),
    "nnodes": (
        "torchrun was given --nnodes {told} in a job of {n} nodes. Since `sbatch --nodes={n}` "
        "changes the number, use SLURM_NNODES."
    ),
    "nproc": "Each node must have two ranks, so use --nproc-per-node 2 and not {told}.",
    "script": "torchrun should start {wanted!r}, and not {told!r}.",
    "no node rank": (
        "torchrun was not told which node it is on. Without --node-rank, each one takes itself for "
        "node 0. (With --rdzv-backend c10d, the rendezvous assigns the node ranks.)"
    ),
    "expanded early": (
        "Every node was given --node-rank 0. If the file says $SLURM_NODEID, the batch shell put in"
        " the value before srun started anything. Single quotes around the command of `srun bash "
        "-c` leave it to the node. (SLURM_LOCALID is a different number, which is 0 on each node.)"
    ),
    "node rank": (
        "The node ranks are not 0, 1, ... in the order of the nodes. Use the number in "
        "SLURM_NODEID."
    ),
    "local address": (
        "Each node would wait for the others at its own address. It must be that of the first node,"
        " on all nodes, which is in MASTER_ADDR."
    ),
    "address": "All nodes must meet at {first}, the first node, whose address is in MASTER_ADDR.",
    "port": "The port must be a number, which is the same on all nodes and is in MASTER_PORT.",
}

HINTS: Hints = {  # where to look, then nearly the code
    "06-broadcast": (
        (
            "A model holds three kinds of tensors, which are trained parameters, frozen parameters,"
            " and buffers. model.named_parameters() and model.named_buffers() show you all of them."
            " Which call gives the tensor of one rank to the others, and how does it name a rank of"
            " a group?"
        ),
        (
            "Write a loop over [*model.parameters(), *model.buffers()]. dist.broadcast writes into "
            "the tensor that it is given, so give it tensor.detach(), which shares the memory and "
            "is outside the graph. group_src=0 is the first rank of a group."
        ),
    ),
    "06-buckets": (
        (
            "Two things change as you go, the list of the open bucket and the number of bytes that "
            "it holds. Before you put a parameter in, and not after, ask whether there is a bucket "
            "and whether it still has room. How many bytes does one number of this tensor have?"
        ),
        (
            "Go through reversed(list(parameters)), and skip what does not require a gradient. Open"
            " a new bucket when there is none yet, or when the last one holds bucket_bytes or more."
            " The bytes of a tensor are numel() * element_size()."
        ),
    ),
    "06-flight": (
        (
            "launch makes a new tensor that holds all gradients one after another. Since land needs"
            " that tensor and the work handle, return both. What takes the place of a gradient that"
            " is None, and how long must it be?"
        ),
        (
            "torch.cat joins flattened gradients, and p.new_zeros(p.numel()) replaces a missing "
            "one. dist.all_reduce(flat, group=group, async_op=True) returns a work handle. In "
            "land, call work.wait(), divide by dist.get_world_size(group), and then use "
            "flat.split([p.numel() for p in bucket]) and view_as."
        ),
    ),
    "06-hooks": (
        (
            "For three buckets, write down which of them leave when the gradients of the third "
            "become ready first, then those of the second, and then those of the first. How many "
            "leave at that last moment? And what must be empty before the next step?"
        ),
        (
            "The next bucket to send has the number len(ddp.flying). While there is such a bucket "
            "and all of its parameters are in ddp.ready, launch it. finish launches what is left, "
            "lands everything in order, and empties ready and flying."
        ),
    ),
    "06-no-sync": (
        (
            "Only ddp.sync changes. What was its value before the block, and was it always True? "
            "Which Python statement runs its lines even after an exception?"
        ),
        (
            "Under @contextmanager, remember ddp.sync, set it to False, yield in a `try`, and set "
            "back what you remembered in `finally`."
        ),
    ),
    "06-sampler": (
        (
            "First compute the number of samples of a rank, which is the same for all, and from it "
            "the length of the padded list. Then draw an order of n, repeat it until it is long "
            "enough, cut it, and take every world_size-th element."
        ),
        (
            "Each rank gets math.ceil(n / world_size) samples. Draw order = torch.randperm(n, "
            "generator=...).tolist(), repeat it until it is long enough, cut it at the total, and "
            "take order[rank::world_size]. The generator is torch.Generator().manual_seed(seed + "
            "epoch)."
        ),
    ),
    "06-bug": (
        (
            "Compare the lines of two ranks with each other, for every pair of ranks. Then compare "
            "the steps of the first epoch with the steps of the second one. Finally, compare the "
            "number of messages with the number of steps."
        ),
        (
            "One fault is in the way that the data takes into the network. Another is in which of "
            "its two numbers a rank gives to the sampler. The third is in what the sampler must "
            "know before it is asked again."
        ),
    ),
    "06-fine-tuning": (
        (
            "Compare the two layers. Different learning rates alone move the ranks a little apart, "
            "but which layer is much further apart than the other one, and what happens to it "
            "between epochs 0 and 1? The evidence does not show one of the faults. To find it, "
            "compare with a single process, and follow the loss of one label into the averaged "
            "gradient, from a micro-batch with two labels and from one with eight."
        ),
        (
            "There is one fault in each of three places. They are when the model was wrapped (and "
            "what required a gradient then), whose loss lowers the learning rate, and what a sum "
            "of losses is divided by. In all three, a rank does alone what all ranks must do "
            "together."
        ),
    ),
    "06-job": (
        (
            "Which program reads which line? sbatch reads #SBATCH. The batch shell runs the rest, "
            "on the first node only. srun starts its command once for each task, where "
            "SLURM_NODEID gives the node. The node must therefore fill in its own number."
        ),
        (
            "Use #SBATCH --nodes=2 and --ntasks-per-node=1. Then call srun bash -c 'torchrun "
            '--nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" --nproc-per-node 2 --master-addr '
            '"$MASTER_ADDR" --master-port "$MASTER_PORT" ...\', in single quotes. Alternatively, '
            "call srun torchrun once with --rdzv-backend c10d and --rdzv-endpoint, so that no node "
            "needs a number."
        ),
    ),
}
