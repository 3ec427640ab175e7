"""The sentences that describe what went wrong on the ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

# One table, so that the course can be translated.
SENTENCES = {
    "waits": "waits in {what} at {where}",
    "waits elsewhere": "waits in {what}, at an unknown line",
    "computes": "computes at {where}",
    "computes elsewhere": "computes at an unknown line",
    "finished": "has finished the cell",
    "raised": "raised {detail} at {where}",
    "raised elsewhere": "raised {detail}",
    "called from": "called from {place}: {source}",
    "lost connection": "an error, because the connection to another rank was lost,",
    "died": "died: {detail}",
    "died at": "died at {where} ({detail})",
    "died early": "died before this cell began: {detail}",
    "died in": "died in {what} at {where} ({detail})",
    "unknown": "does not answer",
    "where": "{place}: {source}",
    "same line": "the same line as {ranks}",
    # the line that is shown while ranks wait
    "live waits": "has been in {call} for {seconds} s",
    "live waits somewhere": "has waited in communication for {seconds} s",
    "live computes": "computes",
    "live finished": "has finished",
    "live raised": "raised an exception",
    "live died": "died",
    "live silent": "has not reported for {seconds} s",
    "live span": "{least} to {most}",
    "to": "to rank {rank}",
    "from": "from rank {rank}",
    "anybody": "from any rank",
    "this cell": "line {line} of this cell",
    "other cell": "line {line} of the cell that begins with `{head}`",
    "function": "line {line}, in {function}",
    "file": "line {line} of {file}",
    "title hang": "HANG: {ranks} wait, and none of them can continue.",
    "title hang one": "HANG: {ranks} is waiting for a rank that never arrives.",
    "title limit": "TIME LIMIT: the cell has run for more than {limit_s:g} s.",
    "title interrupted": "STOPPED: all ranks were interrupted.",
    "title exception": "{ranks} raised an exception.",
    "title died": "{ranks} died.",
    "title mismatch": (
        "MISMATCH: the ranks' calls do not fit together. Do not trust what they computed."
    ),
    "title controller": "The cluster's controller was lost.",
    "not run": "This cell has not run.",
    "title unhealed": "STOPPED while the cluster was being healed. The next cell heals it first.",
    "busy": (
        "The cluster {name!r} is busy with another thread of this notebook. Wait until that has "
        "finished."
    ),
    "heal first": "The cluster's last call did not finish, so the cluster is healed first.",
    "afresh": (
        "New ranks could not be started in the same cluster ({error}), so all of its processes are "
        "restarted."
    ),
    "edges": "Who waits for whom: {edges}",
    "cause": "Likely cause: {cause}",
    "healing": "healing the cluster ...",
    "healed": "The cluster is healed: {n} new ranks.",
    "brought back": "The cells marked --setup ran again and brought back: {names}.",
    "ran again": "The cells marked --setup ran again.",
    "again failed": "A cell marked --setup failed when it was run again: {error}",
    "left out": "Healing does not run it again until you have run it yourself.",
    "lost": "Lost on all ranks: {names}. Run the cells that make them again.",
    "nothing lost": "No variable was lost.",
    "rank": "rank {ranks}",
    "ranks": "ranks {ranks}",
    "killed": "killed by signal {number} ({name})",
    "exited": "the process ended with exit code {code}",
    "node gone": "{node} was lost with all its ranks",
    "memory limit": "out of memory: the rank grew over its limit of {limit} MiB",
    "oom hint": "killed from outside, or by the system because memory ran out",
    "crashed": "inside {frames}",
    "abort hint": "aborted by a library: {line}",
    # likely causes
    "never called": "{culprits} never called {call}.",
    "called less often": (
        "{culprits} called {call} less often than the ranks that wait. The number of calls is "
        "{made} instead of {others}."
    ),
    "called less often, or never": (
        "{culprits} called {call} less often than the ranks that wait, or not at all."
    ),
    "called as often": (
        "{culprits} did not join this {call}. The number of calls is {made} on {culprits}, and "
        "{others} on the ranks that wait."
    ),
    "from to": "{least} to {most}",
    "same batches": (
        "Do all ranks have the same number of batches, and do they leave the training loop in the "
        "same step?"
    ),
    "not synchronised": (
        "Was a backward call made inside no_sync(), or on the output of a model that is not "
        "wrapped?"
    ),
    "must call": "Every rank of the group must call it.",
    "must make": "Every rank of the group must make each of these calls.",
    "other group": (
        "the ranks call {call} in different groups: {groups}. Does every call have the argument "
        "group=group? A rank that is in several groups must use them in the same order as the "
        "other members."
    ),
    "other call": (
        "the ranks wait in different calls: {calls}. A rank has left out a call or made one too "
        "many, or a call lacks the argument group=group."
    ),
    "a group of": "a group of {group}",
    "group": "in the group of {group}",
    "other tensors": "the tensors differ: {tensors}. Shape and dtype must be the same on {group}.",
    "other number": (
        "the ranks have called {call} in the group of {group} a different number of times: this is "
        "{numbers}. Each rank of the group must call it equally often."
    ),
    "number": "call {number}",
    "numbers in a group": (
        "In the group of {group}, src= and dst= name ranks of the whole world, whereas group_src= "
        "and group_dst= name places in the group."
    ),
    "left open": "Started and never finished: {call} at {place}, by {ranks} and not by {others}.",
    # of the tasks of TensorFlow's cluster
    "same task": (
        "{ranks} have the same task in TF_CONFIG, {task}. Give each rank a type and index that no "
        "other rank has."
    ),
    "no such task": (
        "every task in TF_CONFIG must start before {waiters} can go on, and no rank has set its own"
        " TF_CONFIG to {tasks}. Every task must set TF_CONFIG and build the strategy, or start its "
        "server."
    ),
    "silent task": (
        "every task in TF_CONFIG must start before {waiters} can go on, and nothing listens at the "
        "address of {tasks}. Every worker must build the strategy, and with parameter servers "
        "every task except the chief must start a tf.distribute.Server."
    ),
    "at address": "{task} ({ranks}, {address})",
    "tasks start": (
        "every task in TF_CONFIG must start before {waiters} can go on: {tasks}. Has each of them "
        "built its strategy or started its server, and do all of them have the same addresses?"
    ),
    "all tasks": "the tasks of all ranks",
    "serves": (
        "the join() of a tf.distribute.Server never returns, because the task, here {servers}, "
        "serves until its process ends. Omit it in a cell, because the server runs as long as the "
        "rank."
    ),
    "address taken": (
        "a different process already uses the address of this task in TF_CONFIG. Does a different "
        "rank have the same index, or has this rank started a server before? cluster.heal() gives "
        "new processes."
    ),
    "workers differ": (
        "TensorFlow compares the collectives of the workers, and they differ{detail}. Every worker "
        "must run the same steps equally often and in the same order, with tensors of the same "
        "shape and dtype. Compare the number of batches and of steps in an epoch."
    ),
    "workers expected": ": it expected {expected}, and got {got}",
    # what a cell computes wrongly, though its calls fit together
    "overwritten": (
        "OVERWRITTEN: {call} at {place}, {ranks}: {source}\n  Its list holds one tensor several "
        "times, so what a rank sends overwrites what the rank before has sent. Make one tensor for "
        "each rank, for example [torch.empty_like(x) for _ in range(size)]."
    ),
    # what a cell has begun and not finished
    "title left": "STILL UNDER WAY when this cell ended:",
    "left": "  {what} at {place}: {source}",
    "a call": "a call",
    "no place": "an unknown line",
    "the other side": "the other side",
    "left unjoined": (
        "{ranks} started it, and {others} did not. It cannot end before every rank of the group has"
        " called it."
    ),
    "left running": "{ranks} started it, and it was still running.",
    "left message": "{ranks} started it, and {others} has not done its part yet.",
    "left dropped and unmet": (
        "{ranks} started it and dropped what it returned without calling wait(), and {others} "
        "has not done its part."
    ),
    "left dropped": (
        "{ranks} started it and dropped what it returned without calling wait(), so the message may"
        " be lost."
    ),
    "more left": "  and {number} more",
    "in group": "The group consists of {group}.",
    "advice unjoined": (
        "Let every rank of the group make the same calls, and call wait() on what an asynchronous "
        "call returns. A later cell may still do both. If the next cell on all ranks does not, the "
        "call is given up, and no variable is lost."
    ),
    "advice running": (
        "Call wait() on what the call returned before you use its tensor, in this cell or in a "
        "later one."
    ),
    "advice message": (
        "Keep what isend and irecv return until you have called its wait(), in this cell or in a "
        "later one."
    ),
    "advice dropped": (
        "Keep what isend and irecv return, and call its wait(). Before the next cell the group gets"
        " new connections, and no variable is lost."
    ),
    "given up": (
        "Given up before this cell: {what} at {place}, which {ranks} started. Its "
        "group has new connections. No variable was lost, but do not use the result of that call."
    ),
    "not given up": (
        "The cluster starts new ranks, because an earlier cell left a call under way that cannot be"
        " given up otherwise: {what} at {place}, which {ranks} started and {others} did not finish."
    ),
    "left before": (
        "An earlier cell left this under way: {what} at {place}, which {ranks} started. Without "
        "{others} it could not end, and it may have met the calls of this cell."
    ),
    "was left": "An earlier cell left this under way: {what} at {place}, which {ranks} started.",
    "cycle of recv": (
        "every rank waits to receive before it sends: {cycle}. Let one of them send first, "
        "or use isend and irecv."
    ),
    "cycle": (
        "the ranks wait for each other in a circle: {cycle}. Change the order of the calls on one "
        "of them."
    ),
    "other order": (
        "the ranks call collectives in different orders: {calls}. "
        "All ranks must call the same collectives in the same order."
    ),
    "nobody sends": "rank {rank} waits for a message from rank {peer}, which never sent it.",
    "dropped": (
        "rank {rank} waits for a message that rank {peer} began to send with isend, and did not "
        "wait for: keep what isend returns, and call its wait()."
    ),
    "not ended": (
        "all of them have reached the {call}, but it does not end, because an earlier call has not "
        "ended. Keep what isend and irecv return, and call wait() on each."
    ),
    "no gradient": (
        "rank {rank} waits for a gradient from rank {peer}, whose backward never reached what it "
        "received, because it is not part of its loss or its graph is not connected."
    ),
    "cycle of backward": (
        "the ranks wait for each other in a circle: {cycle}. Is the graph of each rank connected, "
        "so that backward meets its calls in the right order?"
    ),
    "nobody receives": "rank {rank} sends to rank {peer}, which never received it.",
    "object without a name": (
        "Horovod matches calls by name, and a broadcast_object without a name is named after the "
        "type of its object, so a dict on one rank and None on another wait forever. Give it the "
        'same name on all ranks, for example name="state".'
    ),
    "wrong tag": "rank {peer} sent with tag {sent}, and rank {rank} asks for tag {asked}.",
    "waits for raised": (
        "{waiters} waited for {culprits}, which could not arrive because of the exception above."
    ),
    "too long": (
        "{ranks} received more bytes than the call expects, so the ranks' calls or their tensors "
        "differ. All ranks must call the same collectives in the same order, with tensors of the "
        "same shape and dtype."
    ),
    "waits for died": "{waiters} waited for {culprits}, which had died.",
    "different": (
        "in call {number} of the cell {described}. Shape and dtype must be the same on all ranks."
    ),
    "different op": (
        "in call {number} of the cell {described}. The operation must be the same on all ranks."
    ),
    "different root": (
        "in call {number} of the cell {described}. The root (src or dst) must be the same on all "
        "ranks."
    ),
    "different group": (
        "in call {number} of the cell {described}. Every rank must make the group from the same "
        "list of ranks."
    ),
    "ranks of a group": "{call} in a group of {value}",
    "all ranks": "all ranks",
    "op": "{call} with {value}",
    "root": "{call} with root {value}",
    "different message": (
        "rank {source} sent {sent} and rank {target} asked for {asked}. "
        "Shape and dtype must be the same on both sides."
    ),
    "different calls": (
        "call {number} of the cell is {described}. All ranks must call the same collectives in the "
        "same order."
    ),
    "is with": "{what} on {ranks}",
    "tensorflow late": (
        "TensorFlow has already run an operation in this process. Run cluster.heal() for new "
        "processes, and make the strategy in the first cell after it."
    ),
    "twice": (
        "the process group exists already. Ask `if not dist.is_initialized():` first, "
        "or call dist.destroy_process_group()."
    ),
    "not initialised": (
        'dist.init_process_group("gloo") has not run on these ranks since they were started.'
    ),
    "no horovod": (
        "Horovod is not installed here. While the set-up still builds it, Start_Here shows how far "
        "it is. Otherwise, run `manyhands doctor`."
    ),
    "renamed": (
        "the PyTorch that is installed here is older than 2.13 and does not have this name yet. "
        "There, all_gather_single is all_gather_into_tensor, and reduce_scatter_single is "
        "reduce_scatter_tensor."
    ),
    "out of memory": "the rank asked for more memory than is available.",
    "exit": (
        "quit, exit and sys.exit end a script, but on a rank they end only the cell. cluster.stop()"
        " ends the ranks."
    ),
    "name here": (
        "{name} is defined in this kernel, not on the ranks. "
        "Write %%px in the first line of the cell that makes it, and run that cell again."
    ),
    "name unmade": (
        "{name} is not defined on the ranks: the cell marked --setup that makes it, which begins "
        "with `{head}`, did not run to its end when the cluster was healed. Run that cell again, "
        "and those below it."
    ),
    "name lost": (
        "{name} is not defined on the ranks. "
        "Cells run on the ranks only if they begin with %%px, and healing loses variables."
    ),
}

# of a Cluster itself
SENTENCES_CORE = {
    "starting": "starting {n} ranks ...",
    "running": "running on {n} ranks {seconds} s",
    "replaced": (
        "This notebook already had a cluster named {name!r} with {n} ranks. It was stopped, its "
        "variables are lost, and a new cluster replaces it. To keep both, give the second one a "
        'different name: Cluster(..., name="second").'
    ),
    "stopped": (
        "The cluster {name!r} was stopped, so its ranks no longer exist. Run the cell with "
        "Cluster(...) again, and then the cells below it."
    ),
}

# a fragment of an exception's text -> the likely cause
KNOWN_ERRORS = {
    "Could not start gRPC server": "address taken",
    "Collective ops must be configured at program startup": "tensorflow late",
    "must be initialized before": "tensorflow late",
    "initialize the default process group twice": "twice",
    "Default process group has not been initialized": "not initialised",
    "No module named 'horovod'": "no horovod",
    "has no attribute 'all_gather_single": "renamed",
    "has no attribute 'reduce_scatter_single": "renamed",
}

# the first word of a sentence about one rank -> the same about several
PLURAL = {"waits": "wait", "computes": "compute", "has": "have", "does": "do"}


def of_ranks(ranks: Collection[int], sentence: str) -> str:
    """A sentence about one rank, without its subject, as it is said of these ranks."""
    verb, space, rest = sentence.partition(" ")
    return sentence if len(ranks) == 1 else PLURAL.get(verb, verb) + space + rest


def ranks_text(ranks: Iterable[int]) -> str:
    """`rank 2`, `ranks 0, 1, 3`, `ranks 0-3`."""
    ranks = sorted(ranks)
    if len(ranks) == 1:
        return SENTENCES["rank"].format(ranks=ranks[0])
    runs: list[list[int]] = []  # [first, last]
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    return SENTENCES["ranks"].format(ranks=", ".join(shown))
