"""What the checks of unit 18 say: criteria with their points, likely mistakes, hints."""

CRITERIA = {  # {check: {criterion: (points, text)}}
    "checkpoint": {
        "latest": (1, "the newest step comes back, 10 after 9 and 1000000 after 999999; an empty folder has none"),
        "torn": (1, "a torn file is skipped, and the one before it is there"),
        "killed": (1, "killed while it writes, and killed before the rename: the last checkpoint is whole"),
        "full": (1, "a full disk raises, and costs nothing that was there"),
        "power": (1, "the bytes are on the disk before the name, and the name when save returns"),
    },
    "state": {
        "copy": (1, "the state is a copy that no later step changes, before or after a restore, of tensors and plain numbers"),
        "learned": (1, "weights, momentum and the rate come back"),
        "drawn": (1, "the three random generators come back, and the position in the order of rows"),
        "equal": (2, "killed at a hidden step, and gone on in a new process: every bit as without the kill"),
    },
    "rows": {
        "shares": (1, "the ranks share the batch: nothing twice, and nobody has two rows more than another"),
        "world": (1, "the batch has the same rows for 1, 2, 3, 4 and 5 ranks"),
        "epoch": (1, "each row once in every epoch, also when the batch changes, and each epoch shuffled in its own order, which the seed decides"),
    },
    "reshard": {
        "pieces": (2, "each new rank gets its numbers, in order, and no padding"),
        "least": (1, "nobody reads a number that is not its own, and no piece is asked twice"),
    },
    "rollback": {
        "commits": (1, "a commit at the start, and every so many steps after the last one"),
        "lost": (1, "each loss is rolled back and answered by a new group"),
        "joined": (1, "when ranks join, no step is done again"),
        "equal": (1, "every bit of the weights as in the right loop, for two hidden plans"),
    },
    "interval": {
        "steps": (2, "steps between two checkpoints, by Young's rule"),
        "lost": (1, "the part of the time that is lost, to first order"),
    },
    "life": {
        "steps": (1, "a life makes the steps that are not in the checkpoint, each of them once; rank 0 alone writes a checkpoint after every fifth step"),
        "ranks": (1, "all ranks have the same weights at the end of each life"),
        "weights": (1, "the weights are those of a training that was never stopped"),
    },
}

MISTAKES = {
    # checkpoint
    "none in an empty folder": "Nothing has been saved yet: latest returns None.",
    "raises": "{error}. What cannot be read is skipped.",
    "no pair": "latest returns the pair (step, state).",
    "sorted as text": "Step {found} came, and {wanted} is newer. As text, \"9\" is larger than \"10\": compare numbers, or fill up with zeros, enough for any step: 12 digits.",
    "older": "Step {found} came, and {wanted} is newer.",
    "by time": "The file of step {found} is the youngest, as after a copy, and so that step came. The newest checkpoint is that of the highest step.",
    "newer": "Step {found} came, which is not whole; {wanted} is the newest one that is.",
    "other state": "The step is right, the state is not the one that was saved for it.",
    "one file": "The checkpoint before is gone: a file was written over. Give each step a file of its own, so that a torn one costs one checkpoint, and not all.",
    "nothing left": "No checkpoint was found, and that of step {wanted} was whole.",
    "never renamed": "Nothing was renamed: the file had its final name while it was not finished. Write beside it, then os.replace.",
    "from elsewhere": "The file came from another folder. Between two disks there is no rename: os.replace raises, and shutil.move copies, which can be cut. Write in the folder itself.",
    "leftovers": "After it was cut short, save does not work any more: {error}",
    "swallowed": "The disk was full, and save returned as if all was well. Let the error out: the training must know.",
    "given up": "The disk was full, and an older checkpoint is gone. Delete an old one only when the new one is whole, and its name on the disk.",
    "too early": "The file was renamed when it had {early} of {size} bytes. Rename when it is closed.",
    "no sync": "Nothing asked for the bytes to be on the disk before the rename. After a power cut the new name may stand for an empty file: file.flush(), then os.fsync(file.fileno()).",
    "no folder sync": "The file is on the disk, its name may not be: after the rename open the folder (os.open(folder, os.O_RDONLY)), and os.fsync it.",
    "other folder": "After the rename a folder was synced, but not the one that the file was renamed into: its list of names has changed. Open that one (os.open(folder, os.O_RDONLY)), and "
                    "os.fsync it.",
    # state
    "not loadable": "The state cannot be written and read again: {error}",
    "changed later": "The state changed when training went on: state_dict() holds the live tensors. Copy them (copy.deepcopy).",
    "shared": "A second restore from the same state gave another job: the first one has trained on in it. optimizer.load_state_dict keeps the tensors that it is given: give it a copy.",
    "weights": "The weights are not those of the moment of state_of.",
    "momentum": "The weights are back, the optimiser's momentum is not: optimizer.state_dict().",
    "rate": "The rate is not what it was, or will not fall when it should: scheduler.state_dict(), beside the optimiser's.",
    "seen": "The position is lost: job.seen says which rows come next. Here some would come twice, or never.",
    "torch": "torch's generator draws other numbers: the dropout differs. torch.get_rng_state().",
    "noise": "job.noise, NumPy's generator, draws other numbers: job.noise.bit_generator.state.",
    "python": "Python's random draws other numbers: random.getstate(), and it is a tuple when it goes back.",
    "end": "The losses part at step {step} behind the restore.",
    # rows
    "no rows": "rows returns a list of row numbers, each from 0 to {last}.",
    "double": "Rank {a} and rank {b} have taken the same row.",
    "too few": "The ranks together have {found} rows of a batch of {wanted}.",
    "uneven": "One rank has {most} rows, another {least}: they may differ by one.",
    "by the world": "With {world} ranks the batch has other rows than with one. The order must depend on the seed and the epoch, and on nothing else.",
    "not again": "The same call gave other rows the second time. Draw from a generator of its own, made of the seed and the epoch.",
    "row twice": "In an epoch of {images} images {double} rows came more than once, and {missing} never.",
    "border": "In a batch across the border of two epochs, the rest belongs to the next epoch's order. A batch that is larger than the data may contain rows of three epochs or more.",
    "same order": "Two epochs have the same order, or one is the other, turned. The epoch belongs into the seed.",
    "seed unused": "With another seed an epoch has the same order, or it is only turned. The seed belongs into the order.",
    "no shuffle": "The rows come as they lie in the file, or in that order turned around. Each epoch is shuffled: a random permutation.",
    "seed and epoch added": "An epoch of one seed has the order of another epoch of another seed, as with seed + epoch, where epoch 1 of seed 5 is epoch 0 of seed 6. Draw with both numbers: "
                            "np.random.default_rng([seed, epoch]).",
    "global generator": "The call has changed the global generator of {name}, with which the training draws too. Draw from a separate generator: np.random.default_rng([seed, epoch]).",
    # reshard
    "no reads": "reads returns a list of triples (old rank, start, stop), an empty one where nothing is to be read.",
    "outside": "(old rank {old}, {start}, {stop}) is outside that piece: it has {size} numbers.",
    "padding": "There is padding among the numbers: only the first {numbers} of all count.",
    "other numbers": "{numbers} numbers in {old} pieces, rank {rank} of {new}: not the numbers {start} to {last}.",
    "nothing to read": "Rank {rank} of {new} has no numbers, and reads some.",
    "too many numbers": "Rank {rank} of {new} reads {found} numbers, and needs {wanted}.",
    "not its own": "Rank {rank} of {new} reads {start} to {stop} of old rank {old}'s piece, and not all of that is its own.",
    "two reads": "Old rank {old} is asked {times} times. What is needed of one piece lies together: one read.",
    "empty read": "A read from {start} to {stop} has nothing in it: leave it out.",
    # rollback
    "raised": "The loop ended by an error: {error}",
    "no first commit": "There was no commit at the start: a loss in the first steps would cost all.",
    "commits late": "Commit {number} came after {found} steps, {wanted} was right. It falls due `every` steps after the last one; steps that were rolled back do not count.",
    "commits missing": "There were {found} commits, {wanted} were due: one whenever `every` steps have been made since the last.",
    "commits too many": "There were {found} commits, {wanted} were due: one only when `every` steps have been made since the last.",
    "kept half a step": "A loss was not rolled back: half a step is in the weights.",
    "no regroup": "After {event} a step was tried before job.regroup() had made a new group, so it raised RankLost: call job.regroup() in this branch.",
    "bug caught": "A step raised an error that is no lost rank ({error}), and the loop went on: it would repeat that step forever. Catch RankLost and RanksJoined, and let every other error out.",
    "one step more": "`until` was reached before the loop began, and it made {found} steps. Ask job.seen < until before each step.",
    "not reached": "The loop came through {found} of {wanted} such events. After each one, no step works before job.regroup().",
    "rolled back for nothing": "Ranks joined before a step had begun, and the loop rolled back ({found} times). Nothing was lost there.",
    "not the end": "The loop ended at {found} images, and {wanted} are asked for.",
    "too far": "The loop went on to {found} images. It ends as soon as {wanted} are reached, here at {enough}.",
    "other weights": "The weights are not those of the right loop.",
    # interval
    "all ranks": "Any of {ranks} ranks stops the job: the time between failures of the job is the mean life of one, divided by their number.",
    "without 2": "The root of save * mtbf: a factor of 2 is missing. On average a failure costs half an interval, not all of it.",
    "seconds": "These are seconds. How many steps fit in?",
    "no step": "At least one step lies between two checkpoints.",
    "times ranks": "More ranks fail more often, not less.",
    "median": "A median leaves the slow saves out, and they cost too: take the mean.",
    "rounded": "By Young's rule it is {exact:.2f}: round that to the nearest whole number.",
    "other steps": "Not by Young's rule, with means of the measured times.",
    "whole interval": "A failure comes in the middle of an interval, on average: half of it is done again.",
    "no restart": "Each failure also costs the restart.",
    "no save": "The time of the saves is lost too: save_s of every_s.",
    "other lost": "Not save / every + (every / 2 + restart) / mtbf.",
}

MISTAKES |= {
    # the second life
    "no network": "life returns the network that it has trained.",
    "life from nothing": "Life {life} begins at step 0 on rank {rank}, although the checkpoint contains the training up to step {start}. Every rank has to know where to go on.",
    "life twice": "Life {life} repeats steps that are already in the checkpoint, on rank {rank}. Which number does the checkpoint contain: the number of the last step, or how many steps were made?",
    "life skipped": "Life {life} skips a step, on rank {rank}. Either the checkpoint counts this step or the loop does, but not both.",
    "life elsewhere": "Life {life} begins at step {begins} on rank {rank}. It should begin at step {start}, because the newest checkpoint should be the one after {start} steps: "
                      "rank 0 saves after every fifth step and at no other time.",
    "life others write": "In life {life}, rank {rank} writes into the folder, too. Only rank 0 may save, because ranks that write the same file at the same time can spoil it.",
    "life other steps": "In life {life}, rank {rank} does not make the steps from {start} to the end, each of them once and in order.",
    "life apart": "At the end of life {life}, rank {rank} has different weights than rank 0. If the ranks begin with the same weights and add up their gradients, what else decides how far a step goes?",
    "life no momentum": "Life {life} begins with momenta of zero on all ranks: now the ranks agree, but the state of the optimiser is lost.",
    "life off by one": "In life {life}, the last step of the checkpoint is made a second time.",
    "life skips one": "In life {life}, the first step after the checkpoint is skipped.",
    "life written late": "After life {life}, one step has been made twice: the checkpoint contains the weights of one more step than the number in it says. After how many steps is it written?",
    "life other step": "Already at the end of life 1, before any checkpoint is loaded, rank 0's weights are not the weights of one process that makes all steps, with momentum 0.9 and a rate of 0.2. "
                       "So the fault is in the steps themselves: compare the loss, the gradients and their sum with those of the given training.",
    "life other state": "After life {life}, the ranks have the same weights, but these are not the weights of one process that has made all steps, each of them once, with momentum 0.9 and a rate of 0.2. "
                        "Life {before} still ended with the right weights: what did life {life} not get from the checkpoint?",
    "life other weights": "After life {life}, rank 0's weights are not the weights of one process that has made all steps, each of them once, with momentum 0.9 and a rate of 0.2. "
                          "If the ranks differ, mend that first.",
}

HINTS = {  # {name: (where to look, which property the right code has)}
    "18-checkpoint": (
        "Order matters: write to another name in the same folder, flush, fsync the file, close it, rename, fsync the folder. In latest, try the files from the newest down, and go to the "
        "next where reading raises. Names with zeros in front sort as numbers do.",
        "Ask at each line what is left if the process is killed just there, or if the power fails. The bytes must be "
        "on the disk before the name exists, and the name before save returns. A folder can be synced like a file, "
        "but it has to be the folder that contains the name. In latest, only reading shows whether a file is whole. "
        "And up to which step do your names sort as the numbers do?",
    ),
    "18-state": (
        "Go through the docstring of Job (`help(Job)`): each of its lines is a part. Three have state_dict and load_state_dict, two generators have states that are got and set, one more has a "
        "state that is an attribute, and the position is a number. state_dict() does not copy, and load_state_dict() of the optimiser does not, either.",
        "Test it on a job of your own. Take the state, make a step, and compare: anything in the state that has "
        "changed was not copied. Then restore, make a step, and compare again. The three random generators, NumPy's "
        "in `job`, PyTorch's and Python's, each have their own way to read and to set their state.",
    ),
    "18-rows": (
        "Think of one endless list: the permutation of epoch 0, then that of epoch 1, ... The batch is its places seen to seen + batch, which may lie in two epochs or more. Only then does a rank take its "
        "share of these rows.",
        "Two numbers belong to each place of the endless list: its epoch, and its index within the epoch. Neither of "
        "them depends on the ranks. The order of an epoch must depend on the seed and on the epoch in such a way that "
        "no two pairs share it by construction, and it must not touch the global generators. Distribute the finished "
        "batch, and not each epoch's part of it.",
    ),
    "18-reshard": (
        "Number all values from 0 to numbers - 1. An old piece and a new piece are both intervals of these: what must be read is where they overlap, counted from the old piece's start.",
        "Old and new pieces follow the same rule, in which sizes are rounded up. Hence the last pieces can be shorter "
        "or empty, and what is behind the last value is padding that nobody reads. An overlap reaches from the larger "
        "start to the smaller stop, and there is none if this is empty. In which coordinates does the old rank count?",
    ),
    "18-rollback": (
        "Two exceptions, two answers: after a loss the state is no longer whole, after a join it is. Both need a new group. Count the steps since the last commit, and begin to count anew after "
        "each commit and after each rollback.",
        "Follow two variables on paper, `job.seen` and the number of steps since the last commit. After a loss, the "
        "job is where the last commit was; after a join, it is where it was. Which exceptions may be caught, and "
        "which must reach the caller? And what is the last commit if a rank is lost in the very first step?",
    ),
    "18-interval": (
        "Young: every = sqrt(2 * save * mtbf), in seconds, where mtbf is that of the whole job. What is lost has two parts: in each interval one save; at each failure half an interval and a restart.",
        "Bring all numbers to one unit. A job of many ranks fails more often than one rank, and the formula needs the "
        "job's mean time. It gives seconds, but steps are asked for, and less than one step is impossible. The lost "
        "part adds two shares of the time: what the saves take in each interval, and what one failure costs divided "
        "by how rarely it happens.",
    ),
    "18-life": (
        "Compare two ranks with each other, and then the steps of the two lives. Where the ranks differ only from the second life on, ask what a rank knows after the broadcasts, and what it does not know.",
        "There are two kinds of faults. One part of the state reaches a single rank only, and sending the weights cannot replace it. And two lines disagree about what a number in the checkpoint counts.",
    ),
}
