"""What can go wrong on the ranks, as exceptions that hold plain data, and the sentences that describe them."""

from dataclasses import dataclass, field


@dataclass
class Where:
    """Where a rank stands: `state` is "waits", "computes", "finished", "raised" or "died"; the rest as far as it is known."""

    rank: int
    state: str
    call: str = ""
    place: str = ""  # "line 3 of this cell"
    source: str = ""  # the text of that line
    line: int = 0
    shape: list | None = None
    dtype: str = ""
    peer: int | None = None
    tag: int = 0
    group: list | None = None  # ranks of the group, None for the world
    sequence: int | None = None
    detail: str = ""
    callers: list = field(default_factory=list)  # [(place, source)], outermost first
    early: bool = False  # it died before the cell began

    def describe(self):
        sentence = self.state
        if self.state == "died" and self.place:
            sentence = "died in" if self.call else "died at"
        if self.state == "died" and self.early:
            sentence = "died early"
        if self.state in ("raised", "waits", "computes") and not self.place:
            sentence = f"{self.state} elsewhere"
        text = SENTENCES[sentence].format(what=self.what(), place=self.place, source=self.source.strip(), detail=self.detail)
        return text if self.source.strip() else text.rstrip(": ")

    def what(self):
        """The call with its tensor and peer, as `all_reduce(float32 [4])` or `recv(float32 [4], from rank 1)`."""
        inside = []
        if self.dtype:
            inside.append(f"{self.dtype} {self.shape}")
        if self.peer is not None or self.call.lstrip("i") in ("send", "recv"):
            if self.peer is None:
                inside.append(SENTENCES["anybody"])
            else:
                inside.append(SENTENCES["to" if self.call.lstrip("i") in ("send", "send_obj") else "from"].format(rank=self.peer))
            if self.tag:
                inside.append(f"tag {self.tag}")
        return f"{self.call}({', '.join(inside)})" if inside else self.call


class Fault(RuntimeError):
    """A cell did not end well on the ranks. `text` is the whole report, `svg` the wait-for graph (or None),
    `edges` the same as a list of (rank, rank it waits for), `waiting` = {rank: Where}, `culprits` the ranks that the others
    waited for, `traceback` = {rank: text}; `reported_s` after how many seconds of the cell it was reported, `healed_s` how
    long the healing took."""

    kind = "fault"

    def __init__(self, message, waiting=None, culprits=(), traceback=None):
        super().__init__(message)
        self.waiting, self.culprits, self.traceback = waiting or {}, list(culprits), traceback or {}
        self.text, self.svg, self.edges = message, None, []
        self.reported_s = self.healed_s = 0.0

    def _render_traceback_(self):  # IPython: the report is already on the page; the stack of the notebook's side says nothing
        return [f"{type(self).__name__}: {self}"]


class Hang(Fault):
    """Every unfinished rank waits in communication, and nobody can move."""

    kind = "hang"


class Mismatch(Fault):
    """The ranks' calls do not fit together: another order, shape or dtype. What they computed is not to be trusted."""

    kind = "mismatch"


class RankError(Fault):
    """An exception on at least one rank."""

    kind = "exception"


class RankDied(Fault):
    """The process of at least one rank has ended."""

    kind = "died"


class LimitExceeded(Fault):
    """The cell ran for longer than its hard limit."""

    kind = "limit"


class Interrupted(Fault):
    """The stop button: all ranks were stopped."""

    kind = "interrupted"


class ControllerDied(Fault):
    """The cluster's controller had gone; a fresh cluster stands in its place."""

    kind = "controller"


@dataclass
class Outcome:
    """What the watch of one cell has seen: results by rank, exceptions by rank, exits by rank, and where each rank stood."""

    results: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)
    exits: dict = field(default_factory=dict)
    where: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    early: set = field(default_factory=set)  # ranks that have not begun the cell
    reason: str = "finished"  # finished, hang, limit, interrupted, controller
    cell: int = 0  # its number in this cluster
    started: float = 0.0  # time.monotonic() when it was sent
    asked: list = field(default_factory=list)  # the ranks it was sent to
    pending: dict = field(default_factory=dict)  # {rank: AsyncResult}, of all ranks asked


# One table, so that the course can be translated.
SENTENCES = {
    "waits": "waits in {what} at {place}: {source}",
    "waits elsewhere": "waits in {what}, at a line that is not known here",
    "computes": "computes at {place}: {source}",
    "computes elsewhere": "computes at a line that is not known here",
    "finished": "has finished the cell",
    "raised": "raised {detail} at {place}: {source}",
    "raised elsewhere": "raised {detail}",
    "called from": "called from {place}: {source}",
    "lost connection": "an error, because the connection to another rank was lost,",
    "died": "died: {detail}",
    "died at": "died at {place}: {source} ({detail})",
    "died early": "died before this cell began: {detail}",
    "died in": "died in {what} at {place}: {source} ({detail})",
    "unknown": "does not answer",
    "to": "to rank {rank}", "from": "from rank {rank}", "anybody": "from any rank",
    "this cell": "line {line} of this cell",
    "other cell": "line {line} of the cell that begins with `{head}`",
    "function": "line {line}, in {function}",
    "file": "line {line} of {file}",
    "title hang": "HANG: {ranks} wait, and nobody can move.",
    "title hang one": "HANG: {ranks} waits, and nobody comes.",
    "title limit": "TIME LIMIT: the cell has run for more than {limit_s:g} s.",
    "title interrupted": "STOPPED: all ranks were interrupted.",
    "title exception": "{ranks} raised an exception.",
    "title died": "{ranks} died.",
    "title mismatch": "MISMATCH: the ranks' calls do not fit together. Do not trust what they computed.",
    "title controller": "The cluster's controller had gone.",
    "not run": "This cell has not run.",
    "title unhealed": "STOPPED while the cluster was being healed. The next cell heals it first.",
    "busy": "The cluster {name!r} is at work for another thread of this notebook. Wait until that has ended.",
    "heal first": "What was done last with the cluster did not come to its end. It is healed first.",
    "afresh": "New ranks could not be started in the same cluster ({error}). All of its processes are started afresh.",
    "edges": "Who waits for whom: {edges}",
    "cause": "Likely cause: {cause}",
    "healed": "The cluster is healed: {n} new ranks.",
    "brought back": "The cells marked --setup ran again and brought back: {names}.",
    "ran again": "The cells marked --setup ran again.",
    "again failed": "A cell marked --setup failed when it was run again: {error}",
    "left out": "After a healing it is not run again, until you run it anew.",
    "lost": "Lost on all ranks: {names}. Run the cells that make them again.",
    "nothing lost": "No variable was lost.",
    "rank": "rank {ranks}", "ranks": "ranks {ranks}",
    "killed": "killed by signal {number} ({name})",
    "exited": "the process ended with exit code {code}",
    "node gone": "{node} has gone, with all its ranks",
    "memory limit": "out of memory: the rank grew over its limit of {limit} MiB",
    "oom hint": "killed from outside, or by the system for lack of memory",
    "crashed": "inside {frames}",
    "abort hint": "aborted by a library: {line}",
    # likely causes
    "never called": "{culprits} never called {call}. Every rank of the group must call it.",
    "cycle of recv": "every rank waits to receive before it sends: {cycle}. Let one of them send first, or use isend and irecv.",
    "cycle": "the ranks wait for each other in a circle: {cycle}. Change the order of the calls on one of them.",
    "other order": "the ranks call collectives in different orders: {calls}. All ranks must call the same collectives in the same order.",
    "nobody sends": "rank {rank} waits for a message from rank {peer}, which never sent it.",
    "dropped": "rank {peer} began to send it with isend, and did not wait for it: keep what isend returns, and call its wait().",
    "no gradient": "rank {rank} waits for a gradient from rank {peer}, whose backward never came to what it received: it is not part of its loss, or its graph is not connected.",
    "cycle of backward": "the ranks wait for each other in a circle: {cycle}. Is the graph of each rank connected, so that backward meets its calls in the right order?",
    "nobody receives": "rank {rank} sends to rank {peer}, which never received it.",
    "wrong tag": "rank {peer} sent with tag {sent}, and rank {rank} asks for tag {asked}.",
    "waits for raised": "{waiters} waited for {culprits}, which could not come because of the exception above.",
    "waits for died": "{waiters} waited for {culprits}, which had died.",
    "different": "in call {number} of the cell {described}. Shape and dtype must be the same on all ranks.",
    "different op": "in call {number} of the cell {described}. The operation must be the same on all ranks.",
    "different root": "in call {number} of the cell {described}. The root (src or dst) must be the same on all ranks.",
    "different group": "in call {number} of the cell {described}. Every rank must make the group from the same list of ranks.",
    "ranks of a group": "{call} in a group of {value}", "all ranks": "all ranks",
    "op": "{call} with {value}", "root": "{call} with root {value}",
    "different message": "rank {source} sent {sent} and rank {target} asked for {asked}. Shape and dtype must be the same on both sides.",
    "different calls": "call {number} of the cell is {described}. All ranks must call the same collectives in the same order.",
    "is with": "{what} on {ranks}",
    "tensorflow late": "TensorFlow has already run an operation in this process. Run cluster.heal() for new processes, and make the strategy in the first cell after it.",
    "twice": "the process group exists already. Ask `if not dist.is_initialized():` first, or call dist.destroy_process_group().",
    "not initialised": "dist.init_process_group(\"gloo\") has not run on these ranks since they were started.",
    "out of memory": "the rank asked for more memory than there is.",
    "exit": "quit, exit and sys.exit end a script; on a rank they end only the cell. cluster.stop() ends the ranks.",
    "name lost": "{name} is not defined on the ranks. Cells run on the ranks only if they begin with %%px, and healing loses variables.",
}

# a fragment of an exception's text -> the likely cause
KNOWN_ERRORS = {
    "Collective ops must be configured at program startup": "tensorflow late",
    "must be initialized before": "tensorflow late",
    "initialize the default process group twice": "twice",
    "Default process group has not been initialized": "not initialised",
}


def ranks_text(ranks):
    """`rank 2`, `ranks 0, 1, 3`, `ranks 0-3`."""
    ranks = sorted(ranks)
    if len(ranks) == 1:
        return SENTENCES["rank"].format(ranks=ranks[0])
    runs = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    shown = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}-{b}" for a, b in runs]
    return SENTENCES["ranks"].format(ranks=", ".join(shown))
