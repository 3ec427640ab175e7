"""The sentences of the clinic: one table, so that the course can be translated."""

from manyhands.clinic.data_messages import MISTAKES_OF_DATA
from manyhands.clinic.layout_messages import MISTAKES_OF_LAYOUTS, REMEDIES_OF_LAYOUTS

# key -> (title, what was measured, what to do, the units that treat it)
MISTAKES = {
    "same rows": (
        "Ranks train on the same rows",
        "{ranks} got the same rows in the same step: {percent} of them, in each of {steps} steps.",
        (
            "Give each rank its own part of the data, by DistributedSampler(dataset) or "
            "rows[rank::world_size]. PyTorch Lightning and Accelerate insert the sampler for you, "
            "unless that was turned off."
        ),
        ("01", "06"),
    ),
    "whole data": (
        "Every rank draws from the whole data set",
        (
            "All ranks read the same data set of {length} rows, each in a different order, because "
            "no sampler distributes the rows. Therefore an epoch of each rank goes through the "
            "whole data set, and a row is used up to {n} times in it."
        ),
        "Give the loader sampler=DistributedSampler(dataset) instead of shuffle=True.",
        ("06",),
    ),
    "set_epoch": (
        "Every epoch has the same order",
        (
            "The sampler drew the same order twice, beginning with rows {first}, since it was still"
            " set to epoch {epoch}."
        ),
        "Call sampler.set_epoch(epoch) at the beginning of each epoch.",
        ("06",),
    ),
    "replicas": (
        "The sampler distributes rows over a wrong number of ranks",
        "There are {ranks_n} ranks, but the sampler distributes the rows over {reported}.",
        "Omit num_replicas and rank of DistributedSampler, or give it the world size.",
        ("06",),
    ),
    "start": (
        "The ranks start with different weights",
        "{k} of {of} parameters differ between the ranks before the first step: {names}.",
        (
            "Broadcast rank 0's parameters and buffers once, before training (DDP does that when it"
            " is made; Horovod: hvd.broadcast_parameters). The same seed on all ranks is not enough"
            " if a rank draws something else first."
        ),
        ("06", "10"),
    ),
    "nan": (
        "The numbers are NaN",
        "In step {step} {place} {ranks} holds NaN. Steps from this one on were not compared.",
        (
            "Find the operation that produces the first NaN, which "
            "torch.autograd.set_detect_anomaly(True) names. Frequent causes are the root or the "
            "logarithm of a number that is not positive, a division by 0, and a learning rate that "
            "is too high."
        ),
        ("01", "17"),
    ),
    "infinite": (
        "The numbers are infinite",
        "In step {step} {place} {ranks} holds infinity. Steps from this one on were not compared.",
        (
            "A number has grown too large for its type. Frequent causes are a learning rate that is"
            " too high, a division by a number close to 0, and float16 without a GradScaler."
        ),
        ("01", "17"),
    ),
    "zero": (
        "The gradient is zero",
        (
            "In each of {steps_n} steps the gradient of every parameter was exactly 0 on all ranks."
            " Training changes nothing."
        ),
        (
            "Check that the loss depends on the weights. It does not if there is only one class, if"
            " an output was detached, or if an activation or a clamp is saturated for all rows."
        ),
        ("01",),
    ),
    "no gradient": (
        "The optimiser gets no gradient",
        (
            "In each of {steps_n} steps backward computed a gradient, but the gradient was missing "
            "or exactly 0 when the optimiser took its step."
        ),
        (
            "Call zero_grad before backward and not between backward and step, and give the "
            "optimiser the parameters of the model that is trained."
        ),
        ("01",),
    ),
    "alone": (
        "Each rank trains its own model",
        "No rank sent any message in the steps that were timed.{data_parallel}",
        (
            "Average the gradients: wrap the model in DistributedDataParallel, or all_reduce them "
            "after backward."
        ),
        ("01", "03", "06"),
    ),
    "own": (
        "The gradients are not averaged",
        "In step {step} every rank's optimiser got that rank's own gradient.",
        (
            "Call the wrapped model instead of the model inside it, because only DDP's own forward "
            "prepares backward for sending. Without DDP, all_reduce each gradient between backward "
            "and step. If you use no_sync, make the last backward of each step outside of it."
        ),
        ("06", "10"),
    ),
    "part own": (
        "Some gradients are not averaged",
        "The gradients of {k} of {of} parameters are each rank's own: {names}.",
        (
            "Include every parameter that is trained in the all_reduce, even if it was created "
            "later or if the optimiser got it from elsewhere."
        ),
        ("06",),
    ),
    "mean of means": (
        "The gradient is a mean of means",
        (
            "The ranks' shares of the batch are {shares}, but their gradients are averaged as if "
            "the shares were equal. In step {step} the result is {percent} away from the gradient "
            "of the mean over all terms."
        ),
        (
            "Compute the loss as a sum instead of a mean, all_reduce the number of its terms, and "
            "divide by that number."
        ),
        ("01",),
    ),
    "sum": (
        "The gradients are summed, not averaged",
        (
            "The gradient that the optimiser got is {factor:.3g} times the gradient that a single "
            "process computes from the rows of all {n} ranks. This has the same effect as a "
            "learning rate {factor:.3g} times as high."
        ),
        (
            "Divide by the number of ranks, with op=ReduceOp.AVG or hvd.Average. If you want the "
            "higher learning rate, set it explicitly instead."
        ),
        ("01", "17"),
    ),
    "divided twice": (
        "The gradient is divided once too often",
        (
            "The gradient that the optimiser got is {factor:.3g} times the gradient that a single "
            "process computes from the rows of all {n} ranks."
        ),
        (
            "Do not divide the loss or the gradients by the number of ranks, because DDP and "
            "Horovod already average."
        ),
        ("01", "06"),
    ),
    "factor": (
        "The gradient has a wrong length",
        (
            "The gradient that the optimiser got has the same direction as the gradient that a "
            "single process computes, but its length is {factor:.3g} times as large."
        ),
        (
            "Between backward and step, look for a division by a number that is not the number of "
            "ranks."
        ),
        ("01",),
    ),
    "one rank's": (
        "All ranks use the gradient of a single rank",
        "Every rank's optimiser got the gradient of rank {rank} alone.",
        (
            "Call all_reduce on the gradients, because a broadcast discards the work of the other "
            "ranks."
        ),
        ("01", "04"),
    ),
    "no zero_grad": (
        "The gradients are never reset",
        "In step {step} the gradient still contains the gradient of the step before.",
        "Call optimizer.zero_grad() in each step, before backward.",
        ("01",),
    ),
    "clip first": (
        "The gradients are clipped before they are averaged",
        (
            "Each rank clipped by its own norm ({norms}), whereas the norm of the averaged gradient"
            " is {right:.3g}."
        ),
        (
            "Clip after the all_reduce (with DDP, after backward), so that all ranks use the same "
            "factor."
        ),
        ("06",),
    ),
    "late": (
        "The gradient is one step late",
        "In step {step} the optimiser got the gradient of the previous step.",
        "Call work.wait() on the work of an asynchronous all_reduce before the optimiser's step.",
        ("06", "09"),
    ),
    "rate": (
        "The ranks have different learning rates",
        "In step {step} the learning rates, by rank, are {rates}.",
        "Use the same learning rate, schedule and number of steps on all ranks.",
        ("17",),
    ),
    "metrics": (
        "The ranks' schedulers see different losses",
        (
            "The values that ReduceLROnPlateau was given, by rank, are {values}. Each rank lowers "
            "its learning rate when its own value no longer falls, so the learning rates will "
            "differ."
        ),
        (
            "Take the mean of the value over all ranks (all_reduce) before you call "
            "scheduler.step(value)."
        ),
        ("17",),
    ),
    "drift": (
        "A rank drifts away",
        (
            "All ranks started with the same weights and got the same gradients. However, after "
            "step {step} {ranks} had weights that differ from rank 0's by {percent} of their "
            "length."
        ),
        (
            "Check whether something other than the optimiser writes into the weights, and whether "
            "only some ranks loaded an optimiser state."
        ),
        ("06", "16"),
    ),
    "buffers": (
        "The ranks have different buffers",
        (
            "{k} buffers differ between the ranks when forward begins in step {step}: {names}. "
            "Therefore each rank evaluates a different model."
        ),
        (
            "Leave DDP's broadcast of buffers on, or broadcast the buffers yourself before you "
            "evaluate or save."
        ),
        ("06",),
    ),
    "other": (
        "The gradient differs from a single process's",
        (
            "In step {step} the gradient that an optimiser got is {percent} away from the gradient "
            "that a single process computes from the rows of all ranks. None of the mistakes that "
            "the clinic knows explains this."
        ),
        "Compare gradients rank by rank, as the units do.",
        ("01", "06"),
    ),
    **MISTAKES_OF_DATA,
    "gathered": (
        "The gradient of a loss over gathered rows is too small",
        (
            "Every rank's loss is the same and depends on the rows of all {n} ranks, which an "
            "all_gather collects after forward. Since this all_gather has no backward, a rank's "
            "gradient contains only its own rows' part, and the average over the ranks is "
            "{factor:.3g} times the gradient that a single process computes."
        ),
        (
            "Multiply the loss by the number of ranks, or gather with "
            "torch.distributed.nn.functional.all_gather, which has a backward."
        ),
        ("06", "11"),
    ),
    **MISTAKES_OF_LAYOUTS,
    "hang": (
        "The script hangs",
        "{text}",
        "Every rank of the group must make the same calls in the same order.",
        ("04", "14"),
    ),
    "crossed": (
        "The ranks' calls do not fit together",
        "{text}",
        (
            "Every rank of the group must make the same calls in the same order, with tensors of "
            "one size."
        ),
        ("04", "14"),
    ),
}
# what a script is to do if the usual remedy of a mistake does not fit it
REMEDIES = {
    **REMEDIES_OF_LAYOUTS,
    "iterable": (
        "An IterableDataset does not accept a DistributedSampler, so shard by rank and by worker "
        "inside __iter__. Yield every n-th row from number rank * workers + worker on, where n is "
        "world_size * workers, and torch.utils.data.get_worker_info() returns the worker. For a "
        "streamed data set of Hugging Face, use datasets.distributed.split_dataset_by_node "
        "instead."
    ),
    "rows by hand": (
        "Each rank needs its own part of the data. Add the rank to the seed that the rows are drawn"
        " with, or take rows[rank::world_size] of an order that all ranks share."
    ),
    "sampler": (
        "DistributedSampler gives each rank its own rows only if it knows the rank. Therefore omit "
        "its arguments rank and num_replicas, or pass dist.get_rank() and dist.get_world_size()."
    ),
    "not through the wrapper": (
        "The model is wrapped in DistributedDataParallel, but the script calls the model "
        "inside it. Call the wrapper instead, because only its forward prepares backward for "
        "the all-reduce."
    ),
    "always in no_sync": (
        "The model is wrapped in DistributedDataParallel, but every forward and backward is inside "
        "no_sync. Leave no_sync for the last micro-batch of each step, so that the sum of its "
        "gradients is averaged."
    ),
    "unfrozen": (
        "DistributedDataParallel notes in its constructor which parameters are trained, and these "
        "parameters were frozen at that time. Wrap the model again after they are unfrozen, or "
        "unfreeze them before the model is wrapped."
    ),
    "outside": (
        "These parameters are not in the module that DistributedDataParallel wraps. Wrap one module"
        " that contains every trained parameter, or all_reduce the gradients of the others after "
        "backward."
    ),
    "uneven": (
        "Give all ranks the same number of batches (DistributedSampler does, and so does "
        "drop_last=True with parts of equal size), or use DistributedDataParallel's join(). The "
        "ranks must also agree on when to leave the loop."
    ),
}
# where numbers that are not finite were seen
PLACES = {
    "local": "the gradient that backward computed on",
    "given": "the gradient that the optimiser got on",
    "weights": "a weight after the step on",
}
CROSSED = (
    "A call received data of a wrong size, because the data belonged to a different call, which not"
    " all ranks have made. In this case gloo ends the process, whereas with NCCL the ranks may wait"
    " forever or continue with wrong numbers."
)
REMARKS = {
    "not judged": (
        "One question was left out because it could not be answered from what was recorded ({what}:"
        " {error})."
    ),
    "not noted": "On rank {rank}, not all that the model does could be recorded ({error}).",
    "undivided parts": (
        "The gradients of {calls} backward calls add up in each step, but no loss is divided by "
        "{calls}, which acts like a learning rate {calls} times as high. If these are parts of one "
        "batch, divide each loss by {calls}, unless the higher learning rate is intended. (Adam "
        "and other optimisers that scale gradients by their size are hardly affected.)"
    ),
    "unknown parts": (
        "The gradients of {calls} backward calls add up in a step. Since the clinic does not know "
        "this loss, it cannot tell whether each was divided by {calls}."
    ),
    "noise": (
        "The model draws random numbers (dropout). Since a single process would draw different "
        "ones, the model could not be run on all rows at once. The gradients were compared with "
        "each rank's noise."
    ),
    "same noise": (
        "The model draws random numbers (dropout), and all ranks draw the same ones because they "
        "have the same seed ({seed}). This is mostly harmless. To give each rank different ones, "
        "add the rank to the seed, and set it after the weights are created."
    ),
    "batch norm": (
        "Batch norm computes its statistics over the {each:g} rows of a rank, whereas a single "
        "process would compute them over {rows}. Therefore the outputs differ by {percent}, and "
        "the weights differ from what a single process computes. torch.nn.SyncBatchNorm (on GPUs) "
        "or a different norm avoids this, although many people accept the difference if each rank "
        "has enough rows."
    ),
    "mixes rows": (
        "The model's output for a row depends on the rest of the batch. With all {rows} rows at "
        "once it differs by {percent}, so several ranks cannot give the weights that a single "
        "process computes."
    ),
    "summed": (
        "The gradients are summed over the ranks, which gives {factor:g} times the mean. That is "
        "right if the loss was divided by the number of ranks before backward. The clinic cannot "
        "tell, because it does not know this loss."
    ),
    "uneven": (
        "The ranks have different numbers of rows, and their gradients are averaged without "
        "weights. That is right if each loss was weighted by its rows before backward. The clinic "
        "cannot tell, because it does not know this loss."
    ),
    "scaled": (
        "The script uses a GradScaler, so only the direction of the gradients was compared and not "
        "their length."
    ),
    "clipped scaled": (
        "Clipped before the gradients are unscaled: clipping saw a norm of {norm:.3g}, which "
        "includes the factor of the GradScaler. Therefore every gradient is clipped, and "
        "scaler.step() makes it smaller than intended by that factor (Adam is hardly affected). "
        "Call scaler.unscale_(optimizer) first."
    ),
    "clipped by value": (
        "Gradients are clipped by value, so steps in which clipping changed them were not compared."
    ),
    "sampled": "Because the model is large, only every {stride}th of its numbers was compared.",
    "not tried: no copy": "The model could not be copied, so it was not run on all rows at once.",
    "not tried: stopped": (
        "The script had to be stopped before its model was run on all rows at once."
    ),
    "not tried: no step": "No complete step was available to run in a single process.",
    "not tried: several models": (
        "The script calls several models, or parts of one, in a step, so they were not run "
        "on all rows at once."
    ),
    "not tried: inputs": (
        "The model's input has no rows in its first dimension, or depends on what is trained, so "
        "the model was not run on all rows at once."
    ),
    "not tried: shapes": (
        "The ranks' inputs have different shapes (padding to different lengths, for example), so "
        "the inputs were not joined, and the model was not run on all rows at once."
    ),
    "not tried: fails": "A copy of the model could not be run on all rows at once: {error}",
    "not tried: other output": (
        "A copy of the model, with the weights of rank 0, gave an output that differs from the "
        "ranks' outputs (by {percent}). Perhaps the model keeps a state between calls, or the "
        "ranks started differently."
    ),
    "scaled by parameter": (
        "In step {step} all ranks got the same gradient. For each parameter it has the same "
        "direction as the gradient that a single process computes, but its length differs by "
        "factors between {least} and {most}, because each parameter's gradient is clipped or "
        "scaled separately. This is a choice of the script rather than a mistake of distribution."
    ),
    "same but other": (
        "In step {step} all ranks got the same gradient, and it is {percent} away from the gradient"
        " that a single process computes, because the script changes the gradients before its "
        "optimiser gets them. None of the mistakes that the clinic knows explains this, and since "
        "the ranks agree, it is not a mistake of distribution."
    ),
    "own length": (
        "The gradient that the optimiser got has {factor:.3g} times the length of the gradient that"
        " a single process computes. This is a mistake unless the script intends it, for example by"
        " a factor of its loss."
    ),
    "length varies": (
        "The gradient has the same direction as the gradient that a single process computes, but "
        "the script scales its length by a different factor in each step. Therefore the length was "
        "not compared."
    ),
    "gathers rows": (
        "After forward, an all_gather collects the model's outputs from other ranks, so each rank's"
        " loss depends on the rows of other ranks. In this case the gradient that a single process "
        "would compute is not known. If the all_gather has no backward, a part of the gradient is "
        "missing."
    ),
    "two measures": (
        "A copy of the model, run on all rows at once, gives a gradient that is {percent} away from"
        " the mean over the ranks. Since the outputs agree, the ranks' losses are not means over "
        "their rows, or the script computes the loss in several calls."
    ),
    "not tried: sends": (
        "The model sends messages during its forward, so it was not run on all rows in a single "
        "process."
    ),
    "not tried: cut": (
        "The model's input or output is split over the ranks (DTensor), so the model was not run on"
        " all rows at once."
    ),
    "other optimiser": (
        "The optimiser is not one of torch's, so only its gradients were compared and not its "
        "steps."
    ),
    "buffers not sent": (
        "Buffers differ between the ranks when forward begins ({names}), although "
        "DistributedDataParallel should broadcast them. It skips the broadcast after a forward "
        "whose gradients it does not average, as in Lightning's manual optimisation. Since each "
        "rank then evaluates with different statistics, broadcast the buffers before you evaluate."
    ),
    "unequal steps": "Not all ranks took the same number of steps: {counts}.",
    "one rank": (
        "There is only one rank, so there is nothing to compare. Ask for more ranks with --ranks."
    ),
    "DataParallel": (
        "nn.DataParallel uses a single process with a thread for each GPU, and without a GPU it "
        "does nothing. Therefore the script was run in a single process. Its successor is DDP."
    ),
    "stand-in": "{words}",
    "linked": (
        "The script ran in a copy of its folder, in which large files are read-only links to the "
        "originals: {files}. Before Python writes to such a file, a copy replaces the link, "
        "whereas other libraries cannot write to it."
    ),
    "left out": (
        "The copy of the script's repository lacks what cannot be copied (pipes, sockets, devices, "
        "unreadable files, and files that are too large): {files}. If the script needs one of "
        "these, give its full path."
    ),
    "few cores": (
        "The ranks waited for a core for {percent} of their time ({cores} cores here), so these "
        "times say little about a machine where each rank has its own core."
    ),
    "input": (
        "A step spends {percent} of its time waiting for the next batch. Setting num_workers of the"
        " DataLoader, or doing less work for each row, would help."
    ),
    "straggler": (
        "The ranks are asleep for between {least} and {most} of their time, because the others wait"
        " for rank {rank}."
    ),
    "horovod bytes": (
        "Horovod's messages are not counted, because they do not go through torch.distributed."
    ),
}
REMARK_UNITS = {
    "buffers not sent": ("06",),
    "input": ("00",),
    "straggler": ("09", "19"),
    "batch norm": ("03", "06"),
    "mixes rows": ("06",),
    "DataParallel": ("03", "06"),
    "noise": (),
    "few cores": (),
    "undivided parts": ("06", "17"),
}
UNKNOWN = "Not determined"  # a diagnosis that begins so is none
DIAGNOSES = {
    "same": (
        "Yes. In each of {steps} steps all ranks had the same weights, and the gradient was what a "
        "single process computes from the same {rows} rows."
    ),
    "same but": (
        "Yes, as far as the clinic can tell. In each of {steps} steps all ranks had the same "
        "weights, and the gradient was the mean over all {rows} rows. However, see the remarks."
    ),
    "sharded": (
        "Yes. The parameters are sharded, and in each of {steps} steps the gradient was what a "
        "single process computes from the same weights and the same {rows} rows."
    ),
    "sharded untold": (
        "Not determined, because the parameters are sharded, and the model could not be run on all "
        "rows in a single process, so the gradients were not compared."
    ),
    "undivided parts": (
        "Yes, as far as the clinic can tell. In each of {steps} steps all ranks had the same "
        "weights, and the gradient was {calls} times the mean over all {rows} rows. See the remark "
        "on backward calls."
    ),
    "changed": (
        "Yes, as far as the clinic can tell. In each of {steps} steps all ranks had the same "
        "weights, and all got the same gradient for the {rows} rows. The remarks say how it "
        "compares with a single process."
    ),
    "wrong": "No. {count} {what} found.",
    "one": "Not determined, because there is one rank only.",
    "failed": (
        "Not determined, because the script failed before the steps of all ranks could be compared."
    ),
    "hung": "Not determined, because the ranks hung before all of them had taken a step.",
    "stopped": (
        "Not determined, because the script was stopped by the time limit before all ranks had "
        "taken a step."
    ),
    "no step": (
        "Not determined, because no step of a torch optimiser was seen on a model that trains. The "
        "clinic looks at torch.optim, so a script that updates weights by hand or in TensorFlow is "
        "only run and watched."
    ),
    "some without a step": (
        "Not determined, because not every rank took a step. By rank, the numbers of steps are "
        "{counts}."
    ),
    "not compared": (
        "Not determined, because in no step did backward compute a gradient with which the "
        "optimisers' gradients could be compared."
    ),
    "not judged": (
        "Not determined, because not all that the ranks did could be recorded and compared. See the"
        " remarks."
    ),
}
QUESTIONS = (
    "Is it right?",
    "Does it hang?",
    "Will it run on GPUs?",
    "What does it cost?",
    "How far will it scale?",
    "What next?",
)
PRINTED, PRINTED_NOTHING = "The last lines that {ranks} printed:", "{ranks} printed nothing."
GPUS = {
    "none": "Nothing was found that NCCL would do differently from gloo, in {seen}.",
    "some": "{count} {what} found that NCCL would do differently from gloo, in {seen}.",
    "no call": "Not determined, because in a second run the script did not call torch.distributed.",
    "failed": (
        "Not determined, because in a second run, whose calls were recorded, the script failed: "
        "{error}"
    ),
    "not judged": (
        "Not determined, because a second run, whose calls were recorded, could not be judged: "
        "{error}"
    ),
    "cut": (
        "The second run had not ended when its time was over, so calls that never end were not "
        "looked for."
    ),
    "waits": (
        "In a second run, whose calls were recorded, the ranks waited for each other until the time"
        " was over."
    ),
    "ended": (
        "In a second run, whose calls were recorded, the ranks could not continue with gloo, so "
        "later calls are missing."
    ),
    "not tried": "Not determined, because the script must first complete its steps here.",
    "one rank": "Not determined, because there is one rank only.",
    "launcher": "Not determined, because only scripts for torchrun are rehearsed.",
    "gpu": "It ran on GPUs here, as the answers to questions 1 and 2 show.",
    "steps": "for {steps} steps",
    "end": "to its end",
    "rest": (
        "The script ran once more, on CPUs, {far}, and its calls were replayed under NCCL's rules. "
        "{cannot} The boxes *On GPUs* of the units explain the rest."
    ),
}
SEVERITIES = {
    "hangs": "Hangs",
    "fails": "Fails",
    "may hang": "May hang",
    "differs": "Differs",
    "remark": "Remark",
}
NOT_YET = {
    "scale": (
        "Not answered here. The command manyhands predict runs the script once more, and predicts "
        "how long a step would take on 8, 64 or 1024 ranks of a different machine."
    )
}
HANGS = {
    "no": "No. Every rank completed {steps} steps{whole}.",
    "end": " and reached the end of the script",
    "no step": (
        "Not determined, because not all ranks took a step, although every rank reached its end."
    ),
    "failed": "Not determined, because the script failed first.",
    "limit": (
        "Not determined, because the script had not finished after {limit_s:g} s and was stopped."
    ),
}
