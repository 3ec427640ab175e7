"""The keys of the dicts that ranks, engines and the notebook send each other.

They go as JSON or pickled.

They are plain dicts at run time, and only type checkers read this file.
"""

from __future__ import annotations

from typing import Any, TypedDict


class FileLine(TypedDict):
    """A line of a file: its name alone, and the line's number; "" and 0 where it is not known."""

    file: str
    line: int


class Spot(FileLine):
    """A line of the learner's on the stack of a rank."""

    path: str
    function: str


class _Called(TypedDict):
    call: str


class Note(_Called, total=False):
    """A call of a rank, as its record has it.

    A wait for an asynchronous call has as much of it as is known.
    """

    group: str  # the group's name, "" for the world
    # its number among the collectives of its group, or among the messages of its stream
    sequence: int
    ranks: list[int]  # of the group, where it is not the world
    shape: list[int]
    dtype: str
    op: str
    root: int
    peer: int | None
    tag: int
    file: str
    line: int
    overwritten: bool  # its list holds one tensor several times
    open: bool  # it has not returned
    index: int  # of a message that is not finished: its place in its stream
    dropped: bool  # likewise: whether what the call returned is gone


class Stand(TypedDict):
    """Where a rank is: `key` stays the same as long as it is in the same call."""

    blocked: bool
    key: str
    call: Note | None
    lines: list[Spot]


class Report(Stand, total=False):
    """A rank's report to the notebook.

    `notes` and `names` come once for each wait; `seen`: from outside.
    """

    token: str
    rank: int
    cell: int
    notes: list[Note]
    names: list[str]
    seen: bool


class RankFacts(TypedDict):
    """Where a rank is."""

    pid: int
    host: str


class ErrorMessage(TypedDict):
    """What an exception says."""

    evalue: str


class RaisedError(ErrorMessage):
    """An exception on a rank."""

    ename: str
    lines: list[Spot]
    traceback: str
    memory: bool  # no memory was left


class Facts(TypedDict, total=False):
    """What a rank has begun in gloo's groups; empty where there is no world.

    See on_rank/tally.py.
    """

    rank: int
    size: int
    groups: list[Any]  # [[name, members, number of collectives], ...]
    begun: int


class _Traced(TypedDict):
    call: str
    shape: list[int] | None
    dtype: str
    lines: list[Spot]


class TracedCall(_Traced, total=False):
    """A collective in torch's flight recorder.

    One that is not there any more has no `ended`.
    """

    ended: bool


class LeftFacts(Facts, total=False):
    """`Facts`, and what is needed to describe what is unfinished."""

    calls: dict[str, list[TracedCall]]  # by the group's name
    streams: list[Any]  # [[the group's name, "send" or "recv", peer, tag, how many], ...]
    messages: list[Note]
    names: list[str]  # of variables that hold what is unfinished
    busy: bool  # a thread of the learner's goes on


class Reply(TypedDict, total=False):
    """How a cell or a function has ended on a rank."""

    ok: bool
    error: RaisedError | None
    notes: list[Note]
    names: list[str]
    begun: Facts
    out: str | None  # of a cell: its last value, as text
    value: Any  # of a function


class _Status(TypedDict):
    status: int | None


class Exit(_Status, total=False):
    """How a rank's process has ended.

    It has its wait status, if that is known, and whether it grew over its limit.
    """

    memory: bool
    node: str  # of a rank that was lost with its node


class TaskConfig(TypedDict):
    """TF_CONFIG of a rank: the addresses of all tasks by kind, and its own (kind, index)."""

    cluster: dict[str, list[str]]
    task: tuple[str, int]


class Duty(TypedDict, total=False):
    """One thing that the guard must end."""

    group: int
    folder: str
    cluster_file: str


class Command(TypedDict):
    """A command line of a launch, with its whole environment."""

    argv: list[str]
    env: dict[str, str]


class EngineFacts(TypedDict):
    """Where an engine is, and the numbers that its launcher gave it."""

    host: str
    address: str
    pid: int
    mpi_rank: int | None
    slurm_procid: int | None
