"""What can go wrong on the ranks, as exceptions that hold plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Literal, TypeAlias

    from manyhands.cluster.engines.engine_calls import Answer
    from manyhands.cluster.payloads import Exit, Note, RaisedError, Reply

    State: TypeAlias = Literal["waits", "computes", "finished", "raised", "died", "unknown"]
    Reason: TypeAlias = Literal["finished", "hang", "limit", "interrupted", "controller"]


@dataclass
class Where:
    """What a rank was seen to do, and where.

    `state` is "waits", "computes", "finished", "raised" or "died"; the rest is set as far as it is
    known.
    """

    rank: int
    state: State
    call: str = ""
    place: str = ""  # "line 3 of this cell"
    source: str = ""  # the text of that line
    line: int = 0
    shape: list[int] | None = None
    dtype: str = ""
    peer: int | None = None
    tag: int = 0
    group: list[int] | None = None  # ranks of the group, None for the world
    sequence: int | None = None
    detail: str = ""
    callers: list[tuple[str, str]] = field(default_factory=list)  # (place, source), outermost first
    early: bool = False  # it died before the cell began

    def describe(self, same_line_as: Collection[int] = ()) -> str:
        """A sentence without its subject.

        `same_line_as`: ranks whose line, which the report has named, is also this rank's.
        """
        sentence: str = self.state
        if self.state == "died" and self.place:
            sentence = "died in" if self.call else "died at"
        if self.state == "died" and self.early:
            sentence = "died early"
        if self.state in ("raised", "waits", "computes") and not self.place:
            sentence = f"{self.state} elsewhere"
        where = (
            SENTENCES["where"]
            .format(place=self.place, source=self.source.strip())
            .removesuffix(": ")
        )
        if same_line_as:
            where = SENTENCES["same line"].format(ranks=ranks_text(same_line_as))
        return SENTENCES[sentence].format(what=self.what(), where=where, detail=self.detail)

    def what(self) -> str:
        """The call with its tensor and peer.

        For example `all_reduce(float32 [4])` or `recv(float32 [4], from rank 1)`.
        """
        inside = []
        if self.dtype:
            inside.append(f"{self.dtype} {self.shape}")
        if self.peer is not None or self.call.lstrip("i") in ("send", "recv"):
            if self.peer is None:
                inside.append(SENTENCES["anybody"])
            else:
                inside.append(
                    SENTENCES[
                        "to" if self.call.lstrip("i") in ("send", "send_obj") else "from"
                    ].format(rank=self.peer)
                )
            if self.tag:
                inside.append(f"tag {self.tag}")
        if self.group:
            inside.append(SENTENCES["group"].format(group=ranks_text(self.group)))
        return f"{self.call}({', '.join(inside)})" if inside else self.call


class ClusterNotStarted(RuntimeError):  # noqa: N818 - its name is in the message that learners read
    """The controller or ranks did not start, or do not answer.

    Mostly this is because the machine is busy, or because something that they need is missing on
    it. The message says all; the stack of the notebook's side says nothing.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class Fault(RuntimeError):  # noqa: N818 - exported to learners; a stop by hand is no error
    """A cell did not end well on the ranks.

    `text` is the whole report, `svg` the wait-for graph (or None), `edges` the same as a list of
    (rank, rank it waits for), `waiting` = {rank: Where}, `culprits` the ranks that the others
    waited for, `traceback` = {rank: text}; `less_often`: whether the culprits have ended, and made
    the call that the others wait in at least once, but less often; `differs`: in what the ranks'
    calls differ, where `text` names that as the cause, "tensors" (shape or dtype), "groups",
    "calls" or "numbers", else ""; `reported_s` after how many seconds of the cell it was reported,
    `healed_s` how long the healing took.
    """

    kind, less_often, differs = "fault", False, ""
    svg: str | None
    edges: list[tuple[int, int]]

    def __init__(
        self,
        message: str,
        waiting: dict[int, Where] | None = None,
        culprits: Iterable[int] = (),
        traceback: dict[int, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.waiting, self.culprits, self.traceback = waiting or {}, list(culprits), traceback or {}
        self.text, self.svg, self.edges = message, None, []
        self.reported_s = self.healed_s = 0.0

    @property
    def graph_text(self) -> str:
        """The wait-for graph in words, for readers who do not see the picture."""
        return "wait-for graph: " + ", ".join(f"{a} -> {b}" for a, b in self.edges)

    # IPython: the report is already on the page; the stack of the notebook's side says nothing
    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class ClusterStopped(RuntimeError):  # noqa: N818 - exported to learners, who may catch it
    """The cluster was stopped before this use.

    In a notebook one line says what to run, without the stack of the notebook's side.
    """

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class Hang(Fault):
    """Every unfinished rank waits in communication, and none of them can continue."""

    kind = "hang"


class Mismatch(Fault):
    """The ranks' calls do not fit together: another order, shape or dtype.

    What they computed is not to be trusted.
    """

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
    """The cluster's controller was lost, and a fresh cluster has replaced it."""

    kind = "controller"


@dataclass
class Outcome:
    """What the watch of one cell has seen.

    It has the results, exceptions and exits by rank, and where each rank was.
    """

    results: dict[int, Reply] = field(default_factory=dict)
    errors: dict[int, RaisedError] = field(default_factory=dict)
    exits: dict[int, Exit] = field(default_factory=dict)
    where: dict[int, Where] = field(default_factory=dict)
    notes: dict[int, list[Note]] = field(default_factory=dict)
    # {rank: {call: how often}} of calls that are not in its notes
    counts: dict[int, dict[str, int]] = field(default_factory=dict)
    early: set[int] = field(default_factory=set)  # ranks that have not begun the cell
    # of a hang: the sentences on collectives that were begun and never ended
    open: list[str] = field(default_factory=list)
    reason: Reason = "finished"
    cell: int = 0  # its number in this cluster
    started: float = 0.0  # time.monotonic() when it was sent
    asked: list[int] = field(default_factory=list)  # the ranks it was sent to
    pending: dict[int, Answer] = field(default_factory=dict)  # of all ranks asked
