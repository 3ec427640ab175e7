"""The words of unit 18's checks: what each criterion says, the likely mistakes, and the hints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.checks.hints import Hints
    from manyhands.checks.on_ranks import Mistakes
    from manyhands.checks.report import Criteria

CRITERIA: Criteria = {  # {check: {criterion: (points, text)}}
    "checkpoint": {
        "latest": (
            1,
            (
                "latest returns the newest step, 10 after 9 and 1000000 after 999999, and None for "
                "an empty folder"
            ),
        ),
        "torn": (1, "a torn file is skipped, and the checkpoint before it is returned"),
        "killed": (
            1,
            (
                "the last checkpoint stays whole if save is killed while it writes or before the "
                "rename"
            ),
        ),
        "full": (1, "if the disk is full, save raises an error and no earlier checkpoint is lost"),
        "power": (
            1,
            (
                "the bytes are on the disk before the name, and the name is on the disk when save "
                "returns"
            ),
        ),
    },
    "state": {
        "copy": (
            1,
            (
                "the state is a copy of tensors and plain numbers that no later step changes, "
                "before or after a restore"
            ),
        ),
        "learned": (1, "weights, momentum and the learning rate are restored"),
        "drawn": (
            1,
            "the three random generators and the position in the order of rows are restored",
        ),
        "equal": (
            2,
            (
                "killed at a hidden step and continued in a new process, the run has every bit as "
                "without the kill"
            ),
        ),
    },
    "rows": {
        "shares": (
            1,
            (
                "the ranks share the batch, no row is used twice, and no rank has two rows more "
                "than another"
            ),
        ),
        "world": (1, "the batch has the same rows for 1, 2, 3, 4 and 5 ranks"),
        "epoch": (
            1,
            (
                "each row is used once in every epoch, even when the batch changes, and each epoch "
                "is shuffled in a different order, which the seed decides"
            ),
        ),
    },
    "reshard": {
        "pieces": (2, "each new rank gets its numbers, in order and without padding"),
        "least": (1, "no rank reads a number that is not its own, and no old rank is asked twice"),
    },
    "rollback": {
        "commits": (
            1,
            (
                "the loop commits at the start, and whenever `every` steps have been taken since "
                "the last commit"
            ),
        ),
        "lost": (1, "each loss is rolled back and answered by a new group"),
        "joined": (1, "when ranks join, no step is repeated"),
        "equal": (1, "every bit of the weights is as in the right loop, for two hidden plans"),
    },
    "interval": {
        "steps": (2, "the number of steps between two checkpoints follows Young's rule"),
        "lost": (1, "the part of the time that is lost is right to first order"),
    },
    "life": {
        "steps": (
            1,
            (
                "each life takes the steps that are not in the checkpoint, once each, and rank 0 "
                "alone writes a checkpoint after every fifth step"
            ),
        ),
        "ranks": (1, "all ranks have the same weights at the end of each life"),
        "weights": (1, "the weights equal the weights of a training run that was never stopped"),
    },
}

MISTAKES: Mistakes = {
    # checkpoint
    "none in an empty folder": "Nothing has been saved yet, so latest must return None.",
    "raises": "{error}. latest must skip whatever it cannot read.",
    "no pair": "latest must return the pair (step, state).",
    "sorted as text": (
        'latest returned step {found}, although step {wanted} is newer. As text, "9" is larger than'
        ' "10", so compare numbers, or fill the names up with zeros, enough for any step (12 '
        "digits)."
    ),
    "older": "latest returned step {found}, although step {wanted} is newer.",
    "by time": (
        "latest returned step {found}, because its file is the youngest, as it can be after a copy."
        " The newest checkpoint is the one with the highest step."
    ),
    "newer": (
        "latest returned step {found}, which is not whole. The newest whole one is step {wanted}."
    ),
    "other state": "The step is right, but the state is not the one that was saved for it.",
    "one file": (
        "The checkpoint before is lost, because a file was overwritten. Give each step a separate "
        "file, so that a torn file costs one checkpoint and not all of them."
    ),
    "nothing left": "No checkpoint was found, although the one of step {wanted} was whole.",
    "never renamed": (
        "Nothing was renamed, so the file had its final name before it was finished. Write under a "
        "temporary name, and then call os.replace."
    ),
    "from elsewhere": (
        "The file was moved in from a different folder. Between two disks a rename is impossible, "
        "because os.replace raises, and shutil.move copies, which can be interrupted. Write in the "
        "folder itself."
    ),
    "leftovers": "After save was interrupted, it does not work any more: {error}",
    "swallowed": (
        "The disk was full, but save returned as if all was well. Let the error out, because the "
        "training loop must know."
    ),
    "given up": (
        "The disk was full, and an older checkpoint is lost. Delete an old one only when the new "
        "one is whole and its name is on the disk."
    ),
    "too early": (
        "The file was renamed when it had {early} of {size} bytes. Rename it only after it is "
        "closed."
    ),
    "no sync": (
        "Nothing asked for the bytes to be on the disk before the rename, so after a power cut the "
        "new name may belong to an empty file. Call file.flush() and then os.fsync(file.fileno())."
    ),
    "no folder sync": (
        "The file is on the disk, but its name may not be. After the rename, open the folder "
        "(os.open(folder, os.O_RDONLY)) and call os.fsync on it."
    ),
    "other folder": (
        "After the rename a folder was synced, but not the one that the file was renamed into, "
        "whose list of names has changed. Open that one (os.open(folder, os.O_RDONLY)) and call "
        "os.fsync on it."
    ),
    # state
    "not loadable": "The state cannot be written and read again: {error}",
    "changed later": (
        "The state changed when training went on. Since state_dict() holds the live tensors, copy "
        "them (copy.deepcopy)."
    ),
    "shared": (
        "A second restore from the same state gave a different job, because the first one went on "
        "training in that state. optimizer.load_state_dict keeps the tensors that it is given, so "
        "give it a copy."
    ),
    "weights": "The weights differ from those at the moment when state_of was called.",
    "momentum": (
        "The weights are restored, but the optimiser's momentum is not. It is in "
        "optimizer.state_dict()."
    ),
    "rate": (
        "The learning rate is not what it was, or will not fall when it should. Keep "
        "scheduler.state_dict(), next to the optimiser's state."
    ),
    "seen": (
        "The position is lost. Since job.seen decides which rows come next, some rows would be used"
        " twice or never."
    ),
    "torch": (
        "torch's generator draws different numbers, so the dropout differs. Its state is "
        "torch.get_rng_state()."
    ),
    "noise": (
        "job.noise, NumPy's generator, draws different numbers. Its state is "
        "job.noise.bit_generator.state."
    ),
    "python": (
        "Python's random draws different numbers. Its state is random.getstate(), and "
        "random.setstate needs it as a tuple."
    ),
    "end": "From step {step} after the restore on, the losses differ.",
    # rows
    "no rows": "rows must return a list of row numbers, each from 0 to {last}.",
    "double": "Rank {a} and rank {b} have taken the same row.",
    "too few": "Together, the ranks have {found} rows, although the batch has {wanted}.",
    "uneven": (
        "One rank has {most} rows and another one has {least}, but the shares may differ by one row"
        " at most."
    ),
    "by the world": (
        "With {world} ranks the batch has different rows than with one. The order must depend on "
        "the seed and the epoch, and on nothing else."
    ),
    "not again": (
        "The same call gave different rows the second time. Draw from a separate generator that is "
        "made from the seed and the epoch."
    ),
    "row twice": (
        "In an epoch of {images} images, {double} rows were used more than once, and {missing} were"
        " never used."
    ),
    "border": (
        "In a batch across the border of two epochs, the rest belongs to the next epoch's order. A "
        "batch that is larger than the data may contain rows of three epochs or more."
    ),
    "same order": (
        "Two epochs have the same order, or a simple rule such as a rotation turns one into the "
        "other. The epoch must be part of the seed."
    ),
    "seed unused": (
        "With a different seed, an epoch has the same order, or a rotation of it. The order must "
        "depend on the seed."
    ),
    "no shuffle": (
        "The rows are in the order of the file, or a simple rule such as a rotation leads to their "
        "order. Shuffle each epoch with a random permutation instead."
    ),
    "seed and epoch added": (
        "An epoch of one seed has the order of a different epoch of a different seed, as with "
        "seed + epoch, where epoch 1 of seed 5 is epoch 0 of seed 6. Draw with both numbers, so "
        "that no two pairs agree (np.random.default_rng([seed, epoch]))."
    ),
    "global generator": (
        "The call has changed the global generator of {name}, from which the training run draws "
        "too. Draw from a separate generator instead (np.random.default_rng([seed, epoch]))."
    ),
    # reshard
    "no reads": (
        "reads must return a list of triples (old rank, start, stop), which is empty if nothing is "
        "to be read."
    ),
    "outside": "(old rank {old}, {start}, {stop}) is outside that piece, which has {size} numbers.",
    "padding": (
        "There is padding among the numbers, but only the first {numbers} of all pieces count."
    ),
    "other numbers": (
        "With {numbers} numbers in {old} pieces, rank {rank} of {new} does not get the numbers "
        "{start} to {last}."
    ),
    "nothing to read": "Rank {rank} of {new} has no numbers, but it reads some.",
    "too many numbers": (
        "Rank {rank} of {new} reads {found} numbers, although it needs only {wanted}."
    ),
    "not its own": (
        "Rank {rank} of {new} reads {start} to {stop} of old rank {old}'s piece, but not all of "
        "that is its own."
    ),
    "two reads": (
        "Old rank {old} is asked {times} times. What is needed of one piece is contiguous, so one "
        "read is enough."
    ),
    "empty read": "A read from {start} to {stop} has nothing in it, so leave it out.",
    # rollback
    "raised": "The loop ended with an error: {error}",
    "no first commit": (
        "There was no commit at the start, so a loss in the first steps could not be rolled back."
    ),
    "commits late": (
        "Commit {number} was made after {found} steps instead of {wanted}. It is due `every` steps "
        "after the last one, where steps that were rolled back do not count."
    ),
    "commits missing": (
        "There were {found} commits, although {wanted} were due. Commit whenever `every` steps have"
        " been taken since the last commit."
    ),
    "commits too many": (
        "There were {found} commits, although only {wanted} were due. Commit only when `every` "
        "steps have been taken since the last commit."
    ),
    "kept half a step": "A loss was not rolled back, so half a step is in the weights.",
    "no regroup": (
        "After {event}, a step was tried before job.regroup() had formed a new group, so it raised "
        "RankLost. Call job.regroup() in this branch."
    ),
    "bug caught": (
        "A step raised an error that is not a lost rank ({error}), and the loop went on, so it "
        "would repeat that step forever. Catch RankLost and RanksJoined, and let every other error "
        "out."
    ),
    "one step more": (
        "`until` was reached before the loop began, but it took {found} steps. Check job.seen < "
        "until before each step."
    ),
    "not reached": (
        "The loop got past {found} of {wanted} such events. After each of them, no step works "
        "before job.regroup()."
    ),
    "rolled back for nothing": (
        "The loop rolled back when ranks joined ({found} times), although they join before a "
        "step has begun, so that nothing is lost."
    ),
    "not the end": "The loop ended at {found} images, although {wanted} are required.",
    "too far": (
        "The loop went on to {found} images. It must end as soon as {wanted} are reached, here at "
        "{enough}."
    ),
    "other weights": "The weights differ from the weights of the right loop.",
    # interval
    "all ranks": (
        "Any of {ranks} ranks stops the job, so the job's mean time between failures is the mean "
        "life of a rank, divided by the number of ranks."
    ),
    "without 2": (
        "This is the root of save * mtbf, so a factor of 2 is missing. On average a failure costs "
        "half an interval, not all of it."
    ),
    "seconds": "These are seconds. How many steps fit into them?",
    "no step": "At least one step is needed between two checkpoints.",
    "times ranks": (
        "More ranks fail more often, so divide by the number of ranks instead of multiplying by it."
    ),
    "median": "A median leaves out the slow saves, although they cost time too, so take the mean.",
    "rounded": "Young's rule gives {exact:.2f}, so round that to the nearest whole number.",
    "other steps": "This does not follow from Young's rule with the means of the measured times.",
    "whole interval": (
        "On average a failure happens in the middle of an interval, so half of the interval is "
        "repeated."
    ),
    "no restart": "Each failure also costs the restart, which is missing here.",
    "no save": "The time of the saves is also lost, which is save_s out of every_s seconds.",
    "other lost": "This is not save / every + (every / 2 + restart) / mtbf.",
}

MISTAKES |= {
    # the second life
    "no network": "life must return the network that it has trained.",
    "life from nothing": (
        "Life {life} begins at step 0 on rank {rank}, although the checkpoint contains the training"
        " run up to step {start}. Every rank must know where to go on."
    ),
    "life twice": (
        "Life {life} repeats steps that are already in the checkpoint, on rank {rank}. Does the "
        "checkpoint contain the number of the last step, or how many steps were taken?"
    ),
    "life skipped": (
        "Life {life} skips a step, on rank {rank}. Either the checkpoint or the loop must count "
        "this step, but not both."
    ),
    "life elsewhere": (
        "Life {life} begins at step {begins} on rank {rank}, but it should begin at step {start}. "
        "The newest checkpoint should be the one after {start} steps, because rank 0 saves after "
        "every fifth step and at no other time."
    ),
    "life others write": (
        "In life {life}, rank {rank} also writes into the folder. Only rank 0 may save, because "
        "ranks that write the same file at the same time can spoil it."
    ),
    "life other steps": (
        "In life {life}, rank {rank} does not take the steps from {start} to the end, each of them "
        "once and in order."
    ),
    "life apart": (
        "At the end of life {life}, rank {rank} has different weights from rank 0. If the ranks "
        "begin with the same weights and add up their gradients, what else decides how far a step "
        "goes?"
    ),
    "life no momentum": (
        "Life {life} begins with momenta of zero on all ranks. As a result, the ranks agree, but "
        "the state of the optimiser is lost."
    ),
    "life off by one": "In life {life}, the last step of the checkpoint is taken a second time.",
    "life skips one": "In life {life}, the first step after the checkpoint is skipped.",
    "life written late": (
        "After life {life}, one step has been taken twice, because the checkpoint contains the "
        "weights of one more step than its number says. After how many steps is it written?"
    ),
    "life other step": (
        "At the end of life 1, before any checkpoint is loaded, rank 0's weights are already not "
        "the weights that a single process computes with momentum 0.9 and a learning rate of 0.2. "
        "Since the fault must be in the steps themselves, compare the loss, the gradients and "
        "their sum with the given training loop."
    ),
    "life other state": (
        "After life {life}, the ranks have the same weights, but these are not the weights that a "
        "single process computes when it takes each step once, with momentum 0.9 and a learning "
        "rate of 0.2. Life {before} still ended with the right weights, so what did life {life} "
        "not get from the checkpoint?"
    ),
    "life other weights": (
        "After life {life}, rank 0's weights are not the weights that a single process computes "
        "when it takes each step once, with momentum 0.9 and a learning rate of 0.2. If the ranks "
        "differ, repair that first."
    ),
}

HINTS: Hints = {  # {name: (where to look, which property the right code has)}
    "18-checkpoint": (
        (
            "The order matters. Write under a different name in the same folder, flush, fsync the "
            "file, close it, rename it, and fsync the folder. In latest, try the files from the "
            "newest one down, and go to the next one if reading raises. Names with leading zeros "
            "sort as numbers do."
        ),
        (
            "Ask at each line what is left if the process is killed just there, or if the power "
            "fails. The bytes must be on the disk before the name exists, and the name before save "
            "returns. A folder can be synced like a file, but it has to be the folder that "
            "contains the name. In latest, only reading shows whether a file is whole. Up to which "
            "step do your names sort as the numbers do?"
        ),
    ),
    "18-state": (
        (
            "Go through the docstring of Job (`help(Job)`), because each of its lines is a part. "
            "Three parts have state_dict and load_state_dict, two generators have functions that "
            "get and set their states, one more generator has its state in an attribute, and the "
            "position is a number. Neither state_dict() nor load_state_dict() of the optimiser "
            "makes a copy."
        ),
        (
            "Test it on a job that you make. Take the state, take a step, and compare, because "
            "anything in the state that has changed was not copied. Then restore, take a step, and "
            "compare again. The three random generators (NumPy's in `job`, PyTorch's and Python's) "
            "each have a different way to read and to set their state."
        ),
    ),
    "18-rows": (
        (
            "Think of one endless list, which begins with the permutation of epoch 0 and goes on "
            "with the permutation of epoch 1. The batch is its places seen to seen + batch, which "
            "may be in two epochs or more. Only then does a rank take its share of these rows."
        ),
        (
            "Two numbers belong to each place of the endless list, namely its epoch and its index "
            "within the epoch. Neither of them depends on the ranks. The order of an epoch must "
            "depend on the seed and on the epoch in such a way that no two pairs share it by "
            "construction, and it must not touch the global generators. Distribute the finished "
            "batch, and not each epoch's part of it."
        ),
    ),
    "18-reshard": (
        (
            "Number all values from 0 to numbers - 1. Since an old piece and a new piece are both "
            "intervals of these numbers, what must be read is their overlap, counted from the old "
            "piece's start."
        ),
        (
            "Old and new pieces follow the same rule, in which sizes are rounded up. Therefore, the"
            " last pieces can be shorter or empty, and what follows the last value is padding that "
            "no rank reads. An overlap extends from the larger start to the smaller stop, and it "
            "does not exist if this interval is empty. In which coordinates does the old rank "
            "count?"
        ),
    ),
    "18-rollback": (
        (
            "The two exceptions need different answers, because the state is no longer whole after "
            "a loss, whereas it is after a join. Both need a new group. Count the steps since the "
            "last commit, and begin to count again after each commit and after each rollback."
        ),
        (
            "Follow two variables on paper, `job.seen` and the number of steps since the last "
            "commit. After a loss, the job is where the last commit was, whereas after a join it "
            "is where it was. Which exceptions may be caught, and which must reach the caller? "
            "What is the last commit if a rank is lost in the very first step?"
        ),
    ),
    "18-interval": (
        (
            "Young's rule is every = sqrt(2 * save * mtbf), in seconds, where mtbf belongs to the "
            "whole job. The lost time has two parts, which are one save in each interval, and half "
            "an interval and a restart at each failure."
        ),
        (
            "Convert all numbers to one unit. A job of many ranks fails more often than one rank, "
            "and the formula needs the job's mean time. It gives seconds, but steps are asked for, "
            "and less than one step is impossible. The lost part adds two shares of the time. One "
            "is what the saves take in each interval, and the other is what one failure costs, "
            "divided by the mean time between failures."
        ),
    ),
    "18-life": (
        (
            "Compare two ranks with each other, and then the steps of the two lives. If the ranks "
            "differ only from the second life on, what does a rank know after the broadcasts, and "
            "what does it not know?"
        ),
        (
            "There are two kinds of faults. One part of the state reaches a single rank only, and "
            "sending the weights cannot replace it. Moreover, two lines disagree about what a "
            "number in the checkpoint counts."
        ),
    ),
}
