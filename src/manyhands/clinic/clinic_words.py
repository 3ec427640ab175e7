"""The sentences of the clinic: one table, so that the course can be translated."""

from manyhands.clinic.data_words import MISTAKES_OF_DATA
from manyhands.clinic.layout_words import MISTAKES_OF_LAYOUTS, REMEDIES_OF_LAYOUTS

# key -> (title, what was measured, what to do, the units that treat it)
MISTAKES = {
    "same rows": (
        "Ranks train on the same rows",
        "{ranks} got the same rows in the same step: {percent} of them, in each of {steps} steps.",
        "Each rank needs its own part of the data: DistributedSampler(dataset), or rows[rank::world_size]. In PyTorch "
        "Lightning and Accelerate the sampler is put in for you, unless that was turned off.", ("01", "06")),
    "whole data": (
        "Every rank draws from the whole data set",
        "All ranks read the same data set of {length} rows, each in an order of its own, and no sampler deals the rows "
        "out. So an epoch of each rank goes through the whole data set, and a row is trained on up to {n} times in it.",
        "Give the loader sampler=DistributedSampler(dataset), and no shuffle=True.", ("06",)),
    "set_epoch": (
        "Every epoch has the same order",
        "The sampler drew the same order twice, beginning with rows {first}; it thought it was in epoch {epoch}.",
        "Call sampler.set_epoch(epoch) at the beginning of each epoch.", ("06",)),
    "replicas": (
        "The sampler deals to another number of ranks",
        "There are {ranks_n} ranks, and the sampler deals the rows to {told}.",
        "Leave num_replicas and rank of DistributedSampler out, or give it the size of the world.", ("06",)),
    "start": (
        "The ranks do not begin with the same weights",
        "{k} of {of} parameters differ between the ranks before the first step: {names}.",
        "Broadcast rank 0's parameters and buffers once, before training (DDP does that when it is made; Horovod: "
        "hvd.broadcast_parameters). One seed on all ranks is not enough where a rank draws something else first.",
        ("06", "10")),
    "nan": (
        "The numbers are NaN",
        "In step {step} {place} {ranks} holds NaN. Steps from this one on were not compared.",
        "Find the operation that makes it: torch.autograd.set_detect_anomaly(True) names it. Frequent causes are the "
        "root or the logarithm of a number that is not positive, a division by 0, and a learning rate that is too "
        "high.", ("01", "17")),
    "infinite": (
        "The numbers are infinite",
        "In step {step} {place} {ranks} holds infinity. Steps from this one on were not compared.",
        "A number has grown too large for its type. Frequent causes are a learning rate that is too high, a division "
        "by a number close to 0, and float16 without a GradScaler.", ("01", "17")),
    "zero": (
        "The gradient is zero",
        "In each of {steps_n} steps the gradient of every parameter was exactly 0 on all ranks, so training changes "
        "nothing.",
        "Check that the loss depends on the weights. It does not if there is one class only, if an output was "
        "detached, or if an activation or a clamp is saturated for all rows.", ("01",)),
    "no gradient": (
        "The optimiser gets no gradient",
        "In each of {steps_n} steps backward computed a gradient, and it was gone or exactly 0 when the optimiser took "
        "its step.",
        "Call zero_grad before backward, and not between backward and step. Give the optimiser the parameters of the "
        "model that is trained.", ("01",)),
    "alone": (
        "Each rank trains a model of its own",
        "No rank sent any message in the steps that were timed.{data_parallel}",
        "Average the gradients: wrap the model in DistributedDataParallel, or all_reduce them after backward.",
        ("01", "03", "06")),
    "own": (
        "The gradients are not averaged",
        "In step {step} every rank's optimiser got that rank's own gradient.",
        "Call the wrapped model, not the one inside: only DDP's own forward prepares backward for sending. Outside of "
        "DDP, all_reduce each gradient between backward and step. With no_sync, the last backward stands outside of "
        "it.",
        ("06", "10")),
    "part own": (
        "Some gradients are not averaged",
        "The gradients of {k} of {of} parameters are each rank's own: {names}.",
        "Every parameter that is trained must be in the all_reduce: also those that are made later, or that the "
        "optimiser got from elsewhere.", ("06",)),
    "mean of means": (
        "A mean of means",
        "The ranks' shares of the batch are {shares}, and their gradients are averaged as if these were the same. In "
        "step {step} that is {percent} away from the gradient of the mean over all terms.",
        "Sum what the loss is a mean of: take the loss as a sum, all_reduce the number of terms, and divide by it.",
        ("01",)),
    "sum": (
        "The gradients are summed, not averaged",
        "The gradient that the optimiser got is {factor:.3g} times that of one process with the rows of all {n} "
        "ranks: the same as a rate {factor:.3g} times as high.",
        "Divide by the number of ranks: op=ReduceOp.AVG, hvd.Average. If the higher rate is what you want, write it "
        "where the rate is set.", ("01", "17")),
    "divided twice": (
        "The gradient is divided once too often",
        "The gradient that the optimiser got is {factor:.3g} times that of one process with the rows of all {n} ranks.",
        "Do not divide the loss, or the gradients, by the number of ranks when DDP or Horovod averages already.",
        ("01", "06")),
    "factor": (
        "The gradient has another length",
        "The gradient that the optimiser got points where that of one process does, and is {factor:.3g} times as long.",
        "Look for a division by another number than that of the ranks, between backward and step.", ("01",)),
    "one rank's": (
        "All ranks use the gradient of one",
        "The gradient that every optimiser got is that of rank {rank} alone.",
        "all_reduce the gradients; a broadcast throws the work of the others away.", ("01", "04")),
    "no zero_grad": (
        "The gradients are never set back",
        "In step {step} the gradient of the step before is still in it.",
        "Call optimizer.zero_grad() in each step, before backward.", ("01",)),
    "clip first": (
        "Clipped before the gradients are averaged",
        "Clipping saw norms of {norms}, each rank's own; the norm of the averaged gradient is {right:.3g}.",
        "Clip after the all_reduce, so that all ranks use one factor. With DDP: after backward.", ("06",)),
    "late": (
        "The gradient is that of the step before",
        "In step {step} the optimiser got the gradient of the step before.",
        "Wait for the work of an asynchronous all_reduce before step: work.wait().", ("06", "09")),
    "rate": (
        "The ranks have different learning rates",
        "In step {step} the rates are, by rank: {rates}.",
        "The same rate, schedule and number of steps on all ranks.", ("17",)),
    "metrics": (
        "The ranks' schedulers decide by different losses",
        "ReduceLROnPlateau was given these values, by rank: {values}. Each rank lowers its rate when its own value no "
        "longer falls, so the rates will differ.",
        "Take the mean of the value over all ranks (all_reduce) before you call scheduler.step(value).", ("17",)),
    "drift": (
        "A rank drifts away",
        "All ranks began with the same weights and got the same gradients. {ranks} had weights after step {step} that "
        "differ from rank 0's by {percent} of their length.",
        "Something else than the optimiser writes into the weights, or a state of the optimiser was loaded on some "
        "ranks only.", ("06", "16")),
    "buffers": (
        "The ranks have different buffers",
        "{k} buffers differ between the ranks as forward begins in step {step}: {names}. Each rank evaluates another "
        "model.",
        "Leave DDP's broadcast of buffers on, or broadcast them yourself before you evaluate and save.", ("06",)),
    "other": (
        "The gradient is not that of one process",
        "In step {step} the gradient that an optimiser got is {percent} away from that of one process with the rows "
        "of all ranks. None of the mistakes that the clinic knows explains it.",
        "Compare gradients rank by rank, as the units do.", ("01", "06")),
    **MISTAKES_OF_DATA,
    "gathered": (
        "The gradient of a loss over gathered rows is too small",
        "Every rank's loss is the same and looks at the rows of all {n} ranks, which an all_gather collects after "
        "forward. This all_gather has no backward, so a rank's gradient holds the part of its own rows only, and the "
        "average over the ranks is {factor:.3g} times the gradient of one process.",
        "Multiply the loss by the number of ranks, or gather with torch.distributed.nn.functional.all_gather, which "
        "has a backward.", ("06", "11")),
    **MISTAKES_OF_LAYOUTS,
    "hang": ("It hangs", "{text}", "Every rank of the group must make the same calls in the same order.", ("04", "14")),
    "crossed": ("The ranks' calls do not fit together", "{text}",
                "Every rank of the group must make the same calls in the same order, with tensors of one size.",
                ("04", "14")),
}
# what a script is to do if the usual remedy of a mistake does not fit it
REMEDIES = {
    **REMEDIES_OF_LAYOUTS,
    "iterable": "An IterableDataset takes no DistributedSampler. Shard by rank and by worker inside __iter__: yield "
                "every n-th row from number rank * workers + worker on, where n is world_size * workers, and "
                "torch.utils.data.get_worker_info() knows the worker. For a streamed data set of Hugging Face, "
                "datasets.distributed.split_dataset_by_node does it.",
    "rows by hand": "Each rank needs its own part of the data. Draw rows with a seed that the rank is added to, or "
                    "take rows[rank::world_size] of an order that all ranks share.",
    "sampler": "DistributedSampler gives each rank its own rows only if it knows the rank: leave its rank and "
               "num_replicas out, or give it dist.get_rank() and dist.get_world_size().",
    "not through the wrapper": "The model is wrapped in DistributedDataParallel, but the script calls the model "
                               "inside. Call the wrapper, because only its forward prepares backward for the "
                               "all-reduce.",
    "always in no_sync": "The model is wrapped in DistributedDataParallel, but every forward and backward is inside "
                         "no_sync. Leave no_sync for the last micro-batch of each step, so that the sum of its "
                         "gradients is averaged.",
    "unfrozen": "DistributedDataParallel notes in its constructor which parameters are trained, and these were frozen "
                "then. Wrap the model again after they are unfrozen, or unfreeze them before it is wrapped.",
    "outside": "These parameters are not in the module that DistributedDataParallel wraps. Wrap one module that holds "
               "all that is trained, or all_reduce the gradients of the others after backward.",
    "uneven": "Give all ranks the same number of batches (DistributedSampler does, and so does drop_last=True with "
              "parts of equal size), or use DistributedDataParallel's join(). The ranks must also agree on when to "
              "leave the loop.",
}
# where numbers that are not finite were seen
PLACES = {"local": "the gradient that backward computed on", "given": "the gradient that the optimiser got on",
          "weights": "a weight after the step on"}
CROSSED = ("What came for a call had another size than the call takes: it belonged to another one, which not all ranks "
           "have made. gloo ends the process then; with NCCL the ranks may wait forever, or go on with wrong numbers.")
REMARKS = {
    "not judged": "One question was left out, because what was recorded does not fit it ({what}: {error}).",
    "not noted": "On rank {rank} not all that the model does could be noted ({error}).",
    "undivided parts": "{calls} backward calls, none divided: like a learning rate {calls} times as high. In each step "
                       "the gradients of {calls} backward calls add up, and no loss is divided by {calls}. If these "
                       "are parts of one batch, divide each loss, unless the higher rate is intended. (Adam and other "
                       "optimisers that scale gradients by their size hardly notice.)",
    "unknown parts": "The gradients of {calls} backward calls add up in a step, of a loss that the clinic does not "
                     "know. It cannot say whether each was divided by {calls}.",
    "noise": "The model draws random numbers (dropout): one process would draw others, so it could not be tried on all "
             "rows at once. The gradients were compared as they came out, each rank's noise in them.",
    "same noise": "The model draws random numbers (dropout), and all ranks draw the same ones: they have the same seed "
                  "({seed}). Mostly harmless; a seed that the rank is added to, set after the weights are made, gives "
                  "each its own.",
    "batch norm": "Batch norm takes its statistics over the {each:g} rows of a rank; one process would take them over "
                  "{rows}. So the outputs differ by {percent}, and the weights are not those of one process. "
                  "torch.nn.SyncBatchNorm (on GPUs) or another norm makes them so; with enough rows on each rank "
                  "many leave it as it is.",
    "mixes rows": "The model's output for a row depends on the other rows: with all {rows} rows at once it differs by "
                  "{percent}. So no number of ranks gives the weights of one process.",
    "summed": "The gradients are summed over the ranks, {factor:g} times the mean. That is right if the loss was "
              "divided by the number of ranks before backward; the clinic does not know this loss.",
    "uneven": "The ranks have different numbers of rows, and their gradients are averaged as they are. That is right "
              "if each loss was weighted by its rows before backward; the clinic does not know this loss.",
    "scaled": "A GradScaler is at work: the length of the gradients was not compared, only where they point.",
    "clipped scaled": "Clipped before the gradients are unscaled: clipping saw a norm of {norm:.3g}, with the factor "
                      "of the GradScaler in it. So every gradient is clipped, and scaler.step() makes it shorter by "
                      "that factor than was meant (Adam hardly notices). Call scaler.unscale_(optimizer) first.",
    "clipped by value": "Gradients are clipped by value: steps in which that changed them were not compared.",
    "sampled": "The model is large: of its numbers every {stride}th was compared.",
    "not tried: no copy": "The model could not be copied, so it was not run on all rows at once.",
    "not tried: stopped": "The script had to be stopped before its model was run on all rows at once.",
    "not tried: no step": "There was no whole step to run in one process.",
    "not tried: several models": "The script calls several models, or parts of one, in a step: they were not run on "
                                 "all rows at once.",
    "not tried: inputs": "What goes into the model has no rows in its first dimension, or depends on what is trained: "
                         "it was not run on all rows at once.",
    "not tried: shapes": "The ranks' inputs have different shapes (padding to different lengths, for example), so they "
                         "were not put together, and the model was not run on all rows at once.",
    "not tried: fails": "The model's copy could not be run on all rows at once: {error}",
    "not tried: other output": "A copy of the model, with the weights of rank 0, gave another output than the ranks "
                               "did (by {percent}): it keeps something between calls, or the ranks began differently.",
    "scaled by parameter": "In step {step} all ranks got the same gradient. For each parameter it points where that of "
                           "one process does, but its length differs, by factors between {least} and {most}: each "
                           "parameter's gradient is clipped or scaled separately. That is a choice of the script and "
                           "no mistake of distribution.",
    "same but other": "In step {step} all ranks got the same gradient, and it is {percent} away from that of one "
                      "process: the script changes the gradients before its optimiser gets them. None of the mistakes "
                      "that the clinic knows explains that, and ranks that agree make no mistake of distribution.",
    "own length": "The gradient that the optimiser got is {factor:.3g} times as long as that of one process. It is a "
                  "mistake only if the script does not intend it, for example by a factor of its loss.",
    "length varies": "The gradient points where that of one process does, and its length is set by the script, in each "
                     "step by a different factor. So the length was not compared.",
    "gathers rows": "After forward, an all_gather collects what the model gave on other ranks, so each rank's loss "
                    "looks at the rows of other ranks. What one process would have for a gradient is not known then: "
                    "if the all_gather has no backward, a part of the gradient is missing.",
    "two measures": "The model's copy, run on all rows at once, gives a gradient that is {percent} away from the mean "
                    "over the ranks. The outputs agree, so the ranks' losses are no mean over their rows, or the "
                    "script takes the loss in several calls.",
    "not tried: sends": "The model sends messages in its forward, so it was not run on all rows in one process.",
    "not tried: cut": "What goes into the model, or comes out of it, is cut over the ranks (DTensor), so it was not "
                      "run on all rows at once.",
    "other optimiser": "The optimiser is not one of torch's: only its gradients were compared, not its steps.",
    "buffers not sent": "Buffers differ between the ranks as forward begins ({names}), although "
                        "DistributedDataParallel is to broadcast them. It skips this after a forward whose gradients "
                        "it does not average, as in Lightning's manual optimisation. Each rank evaluates with "
                        "different statistics, so broadcast them before you evaluate.",
    "unequal steps": "Not all ranks took the same number of steps: {counts}.",
    "one rank": "There is one rank only: nothing to compare with. Ask for more with --ranks.",
    "DataParallel": "nn.DataParallel is one process with a thread for each GPU; without a GPU it does nothing. It "
                    "was run as one process. DistributedDataParallel is its successor.",
    "stand-in": "{words}",
    "linked": "The script ran in a copy, and in that copy what is large is a read-only link to the original: {files}. "
              "Before Python writes to it, a copy takes the link's place. Other libraries cannot write to it.",
    "left out": "The copy of the script's repository lacks what cannot be copied (pipes, sockets, devices, unreadable "
                "files, and what is too large): {files}. What the script needs of it can be named by its full path.",
    "few cores": "The ranks waited for a core for {percent} of their time ({cores} cores here): times say little "
                 "about a machine where each rank has its own.",
    "input": "{percent} of a step goes by in waiting for the next batch. num_workers of the DataLoader, or less to "
             "do for each row, would help.",
    "straggler": "The ranks are asleep for between {least} and {most} of their time: the others wait for rank {rank}.",
    "horovod bytes": "Horovod's messages are not counted: they do not go through torch.distributed.",
}
REMARK_UNITS = {"buffers not sent": ("06",),
              "input": ("00",), "straggler": ("09", "19"), "batch norm": ("03", "06"), "mixes rows": ("06",),
              "DataParallel": ("03", "06"), "noise": (), "few cores": (),
              "undivided parts": ("06", "17")}
UNKNOWN = "Not determined"  # a verdict that begins so is none
VERDICTS = {
    "same": "Yes. In each of {steps} steps all ranks had the same weights, and the gradient was that of one process "
            "with the same {rows} rows.",
    "same but": "As far as it can be told: in each of {steps} steps all ranks had the same weights, and the gradient "
                "was the mean over all {rows} rows. But see the remarks.",
    "sharded": "Yes. The parameters are sharded; in each of {steps} steps the gradient was that of one process with "
               "the "
               "same weights and the same {rows} rows.",
    "sharded untold": "Not determined: the parameters are sharded, and the model could not be run on all rows in one "
                      "process, so the gradients were not compared.",
    "undivided parts": "As far as it can be told: in each of {steps} steps all ranks had the same weights, and the "
                       "gradient was {calls} times the mean over all {rows} rows. See the remark on backward calls.",
    "changed": "As far as it can be told: in each of {steps} steps all ranks had the same weights, and all got the "
               "same gradient for the {rows} rows. The remarks say how it compares with a single process.",
    "wrong": "No. {count} {what} found.",
    "one": "Not determined: there is one rank only.",
    "failed": "Not determined: the script failed before the steps of all ranks could be compared.",
    "hung": "Not determined: the ranks hung before all of them had taken a step.",
    "stopped": "Not determined: the script was stopped by the time limit before all ranks had taken a step.",
    "no step": "Not determined: no step of a torch optimiser was seen on a model that trains. The clinic looks at "
               "torch.optim; a script that updates weights by hand, or in TensorFlow, is run and watched only.",
    "some without a step": "Not determined: not every rank took a step. By rank, the numbers of steps are {counts}.",
    "not compared": "Not determined: no step had a gradient from backward with which the gradient that the "
                    "optimisers got could be compared.",
    "not judged": "Not determined: not all that the ranks did could be recorded and compared. See the remarks.",
}
QUESTIONS = ("Is it right?", "Does it hang?", "Will it run on GPUs?", "What does it cost?", "How far will it scale?",
             "What next?")
PRINTED, PRINTED_NOTHING = "The last lines that {ranks} printed:", "{ranks} printed nothing."
GPUS = {"none": "Nothing was found that NCCL would do otherwise than gloo did, in {seen}.",
        "some": "{count} {what} found that NCCL would do otherwise than gloo did, in {seen}.",
        "no call": "Not determined: in a second run the script called nothing of torch.distributed.",
        "failed": "Not determined: in a second run, whose calls were recorded, the script failed: {error}",
        "not judged": "Not determined: a second run, whose calls were recorded, could not be judged: {error}",
        "cut": "The second run was still at work when its time was over, so what never ends was not looked for.",
        "waits": "In a second run, whose calls were recorded, the ranks waited for each other until the time was over.",
        "ended": "In a second run, whose calls were recorded, the ranks could not go on with gloo, so later calls "
                 "are missing.",
        "not tried": "Not determined: for that the script must first come through its steps here.",
        "one rank": "Not determined: there is one rank only.",
        "launcher": "Not determined: only scripts for torchrun are rehearsed.",
        "gpu": "It ran on GPUs here, as questions 1 and 2 tell.",
        "steps": "for {steps} steps",
        "end": "to its end",
        "rest": "The script ran once more, on CPUs, {far}, and its calls were replayed under NCCL's rules. "
                "{cannot} The boxes *On GPUs* of the units have the rest."}
SEVERITIES = {"hangs": "Hangs", "fails": "Fails", "may hang": "May hang", "differs": "Differs", "remark": "Remark"}
NOT_YET = {"scale": "Not here: manyhands predict runs the script once more, and says what it would take on 8, 64 or "
                    "1024 ranks of another machine."}
HANGS = {"no": "No: every rank came through {steps} steps{whole}.",
         "end": " and to the end of the script",
         "no step": "Not determined: every rank came to its end, and not all of them took a step.",
         "failed": "Not determined: the script failed first.",
         "limit": "Not determined: after {limit_s:g} s it had not come to the end of what was asked for, and was "
                  "stopped."}
