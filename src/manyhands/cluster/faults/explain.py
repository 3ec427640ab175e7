"""From the outcome of a cell to the Fault that the learner reads.

It has the ranks' states, the wait-for graph and a likely cause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyhands.cluster.faults import diagnose, mismatched_calls, tf_tasks
from manyhands.cluster.faults.fault_messages import KNOWN_ERRORS, SENTENCES, of_ranks, ranks_text
from manyhands.cluster.faults.kinds import (
    ControllerDied,
    Fault,
    Hang,
    Interrupted,
    LimitExceeded,
    Mismatch,
    RankDied,
    RankError,
    Where,
)
from manyhands.cluster.faults.picture import draw_wait_for_graph
from manyhands.cluster.faults.source_lines import spot_of
from manyhands.cluster.on_rank.stack import name_in_line
from manyhands.cluster.show import in_this_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol

    from manyhands.cluster.faults.kinds import Outcome
    from manyhands.cluster.faults.source_lines import Places
    from manyhands.cluster.payloads import Exit, Note, RaisedError, Report, TaskConfig

    class Newest(Protocol):
        """The newest reports of the ranks."""

        @property
        def newest(self) -> Mapping[int, Report]:
            """The newest report of each rank."""

    class Witness(Protocol):
        """A Runtime, or what offers the same of a script."""

        @property
        def reports(self) -> Newest:
            """What the ranks have reported."""

        def log_tail(self, rank: int) -> list[str]:
            """The last lines that C++ libraries wrote to the stderr of a rank."""

        def struck(self, rank: int) -> list[str]:
            """The frames in which a fatal signal struck a rank, innermost first."""


LOST_CONNECTION = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Read error",
    "Broken pipe",
    "Timed out waiting",
)
TOO_LONG = "Received data size doesn't match expected size"  # gloo aborts with it
WIDEST_LABEL = 20  # characters: behind a longer list of ranks the text begins where it may


def locate_ranks(
    outcome: Outcome,
    runtime: Witness,
    cell_file: str,
    places: Places,
    memory_mib: int | None,
    world_size: int,
) -> dict[int, Where]:
    """{rank: Where} at the end of the watch; and what was left open goes into `outcome.open`."""
    where: dict[int, Where] = {}
    reports = runtime.reports
    for rank in outcome.asked:
        if rank in outcome.exits:
            where[rank] = _last_seen(rank, outcome, reports.newest.get(rank), cell_file, places)
            where[rank].detail = _how_it_died(
                outcome.exits[rank], memory_mib, runtime.log_tail(rank), runtime.struck(rank)
            )
            where[rank].early = rank in outcome.early
        elif rank in outcome.errors:
            error = outcome.errors[rank]
            place, source, line = places.find(error["lines"], cell_file)
            where[rank] = Where(
                rank,
                "raised",
                place=place,
                source=source,
                line=line,
                detail=_message(error),
                callers=places.callers(error["lines"], cell_file),
            )
        elif rank in outcome.results:
            where[rank] = Where(rank, "finished")
        else:
            where[rank] = locate_rank(
                rank, reports.newest.get(rank), outcome.cell, cell_file, places
            )
    for here in where.values():
        if here.call == "Work.wait":
            diagnose.name_work(here, outcome.notes)
    if outcome.reason == "hang":
        for note, ranks, others in diagnose.left_open(where, outcome.notes, world_size):
            place = places.find([spot_of(note)], cell_file)[0]
            outcome.open.append(
                SENTENCES["left open"].format(
                    call=note["call"],
                    place=place,
                    ranks=ranks_text(ranks),
                    others=ranks_text(others),
                )
            )
    return where


def describe_overwritten(notes: dict[int, list[Note]], cell_file: str, places: Places) -> str:
    """What is said of calls whose list holds one tensor several times.

    In such a list, each part overwrites the one before.
    """
    ranks_of: dict[tuple[str, str, str], dict[int, bool]] = {}
    for rank, calls in sorted(notes.items()):
        for note in calls:
            if note.get("overwritten"):
                place, source, _ = places.find([spot_of(note)], cell_file)
                ranks_of.setdefault((note["call"], place, source.strip()), {})[rank] = True
    return "\n".join(
        SENTENCES["overwritten"].format(
            call=call, place=place, source=source, ranks=ranks_text(ranks)
        )
        for (call, place, source), ranks in ranks_of.items()
    )


def _message(error: RaisedError) -> str:
    # gloo names ports here, and not the rank
    if any(text in error["evalue"] for text in LOST_CONNECTION):
        return SENTENCES["lost connection"]
    first = next(iter(error["evalue"].strip().splitlines()), "")
    return f"{error['ename']}: {first}".rstrip(": ")


def locate_rank(
    rank: int, report: Report | None, cell: int, cell_file: str, places: Places
) -> Where:
    """The `Where` of a rank that has not ended, from its newest report."""
    if report is None or report["cell"] != cell:
        return Where(rank, "unknown")
    call: Note = report["call"] or {"call": ""}
    lines = report["lines"]
    if call.get("file"):  # the record knows the line of the call itself
        last = lines[-1] if lines else spot_of(call)
        lines = [*lines[:-1], {**last, "file": call["file"], "line": call["line"]}]
    place, source, line = places.find(lines, cell_file)
    if not report["blocked"]:
        return Where(rank, "computes", place=place, source=source, line=line)
    return Where(
        rank,
        "waits",
        call=call.get("call") or name_in_line(source),
        place=place,
        source=source,
        line=line,
        shape=call.get("shape"),
        dtype=call.get("dtype", ""),
        peer=call.get("peer"),
        tag=call.get("tag", 0),
        group=call.get("ranks"),
        sequence=call.get("sequence"),
    )


def _last_seen(
    rank: int, outcome: Outcome, report: Report | None, cell_file: str, places: Places
) -> Where:
    """Where a rank was when it died.

    It is the call that its record holds open, or the line of its last report.
    """
    notes = outcome.notes.get(rank) or []
    if notes and (notes[-1].get("open") or notes[-1]["call"] == "os._exit"):
        note = notes[-1]
        place, source, line = places.find([spot_of(note)], cell_file)
        return Where(
            rank,
            "died",
            call=note["call"],
            place=place,
            source=source,
            line=line,
            shape=note.get("shape"),
            dtype=note.get("dtype", ""),
            peer=note.get("peer"),
            tag=note.get("tag", 0),
        )
    if report is not None and report["cell"] == outcome.cell:
        place, source, line = places.find(report["lines"], cell_file)
        return Where(rank, "died", place=place, source=source, line=line)
    return Where(rank, "died")


def _how_it_died(exit_: Exit, memory_mib: int | None, tail: list[str], stack: list[str]) -> str:
    import os
    import signal

    status = exit_["status"]
    if exit_.get("node"):
        return SENTENCES["node gone"].format(node=exit_["node"])
    if exit_.get("memory"):
        return SENTENCES["memory limit"].format(limit=memory_mib)
    if status is None:
        return SENTENCES["oom hint"]
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = (
            signal.Signals(number).name
            if number in set(signal.Signals)
            else f"SIGRTMIN+{number - signal.SIGRTMIN}"
        )
        text = SENTENCES["killed"].format(number=number, name=name)
        if stack:
            text += ", " + SENTENCES["crashed"].format(frames=" < ".join(stack))
        if number == signal.SIGABRT and tail:
            what = next((line for line in reversed(tail) if "what():" in line), tail[-1])
            return f"{text}, {SENTENCES['abort hint'].format(line=what.split(']')[-1].strip())}"
        return f"{text}, {SENTENCES['oom hint']}" if number == signal.SIGKILL else text
    return SENTENCES["exited"].format(code=os.WEXITSTATUS(status))


def secondary_errors(outcome: Outcome) -> list[int]:
    """Ranks whose exception only says that another rank was lost."""
    return [
        rank
        for rank, error in outcome.errors.items()
        if any(text in error["evalue"] for text in LOST_CONNECTION)
    ]


def make_fault(
    outcome: Outcome,
    where: dict[int, Where],
    world_size: int,
    limit_s: float,
    unmade: Callable[[str], str | None] = lambda name: None,
    tf_configs: Mapping[int, TaskConfig | None] | None = None,
) -> Fault | None:
    """The Fault that `outcome` amounts to, with its text and picture; None if all is well.

    `unmade(name)`: the first line of a setup cell that should have made this name on the ranks, and
    did not. `tf_configs`: {rank: its TF_CONFIG}, as far as it is known.
    """
    tf_configs = tf_configs or {}
    edge_list = diagnose.edges(where, world_size)
    odd = mismatched_calls.find_mismatch(outcome.notes)
    waiting = {rank: here for rank, here in where.items() if here.state == "waits"}
    traceback = {rank: error["traceback"] for rank, error in outcome.errors.items()}
    first = sorted(set(outcome.errors) - set(secondary_errors(outcome))) or sorted(outcome.errors)
    differs = ""
    kind: type[Fault]
    culprits: list[int]
    if outcome.reason == "interrupted":
        kind, title, culprits, cause = Interrupted, SENTENCES["title interrupted"], [], ""
    elif outcome.reason == "controller":
        kind, title, culprits, cause = ControllerDied, SENTENCES["title controller"], [], ""
    elif outcome.reason == "limit":
        kind, title, culprits, cause = (
            LimitExceeded,
            SENTENCES["title limit"].format(limit_s=limit_s),
            [],
            "",
        )
    elif (
        odd
        and (odd.kind != "different calls" or (outcome.reason == "finished" and not outcome.exits))
        and not (first and not secondary_errors(outcome) and not outcome.exits)
    ):
        kind, title = Mismatch, SENTENCES["title mismatch"]
        cause, culprits, differs = odd.text, odd.ranks, odd.differs
    elif tf_mismatch := next(
        filter(None, (tf_tasks.cause_of_mismatch(outcome.errors[rank]) for rank in first)), None
    ):
        kind, title, culprits, cause = Mismatch, SENTENCES["title mismatch"], first, tf_mismatch
    elif outcome.exits:
        kind, culprits = RankDied, sorted(outcome.exits)
        title = _capital(SENTENCES["title died"].format(ranks=ranks_text(culprits)))
        too_long = [rank for rank in culprits if TOO_LONG in where[rank].detail]
        cause = (
            SENTENCES["too long"].format(ranks=ranks_text(too_long))
            if too_long
            else _cause_of_waiting("waits for died", waiting, culprits)
        )
    elif outcome.errors:
        kind, culprits = RankError, first
        title = _capital(SENTENCES["title exception"].format(ranks=ranks_text(culprits)))
        same = (
            tf_tasks.cause_of_same_task(tf_configs)
            if tf_tasks.TAKEN in outcome.errors[first[0]]["evalue"]
            else None
        )
        cause = same.text if same else _known(outcome.errors[first[0]], unmade)
        # the library may have raised because of that
        if not cause and odd and odd.differs in ("tensors", "groups"):
            cause, differs = odd.text, odd.differs
        cause = cause or _cause_of_waiting("waits for raised", waiting, culprits)
    elif outcome.reason == "hang":
        kind, title = (
            Hang,
            SENTENCES["title hang" if len(waiting) > 1 else "title hang one"].format(
                ranks=ranks_text(waiting)
            ),
        )
        hang_cause = tf_tasks.cause_of_start(where, tf_configs) or diagnose.cause_of_hang(
            where, edge_list, outcome.notes, outcome.counts
        )
        cause, culprits, differs = (
            (odd.text, odd.ranks, odd.differs)
            if odd
            else (hang_cause.text, hang_cause.culprits, hang_cause.differs)
        )
    else:
        return None
    fault = _write(kind, title, where, waiting, culprits, traceback, edge_list, cause, outcome.open)
    fault.less_often, fault.differs = kind is Hang and not odd and hang_cause.less_often, differs
    return fault


def _write(
    kind: type[Fault],
    title: str,
    where: dict[int, Where],
    waiting: dict[int, Where],
    culprits: list[int],
    traceback: dict[int, str],
    edge_list: list[tuple[int, int]],
    cause: str,
    left_open: Sequence[str] = (),
) -> Fault:
    order = (
        sorted(where, key=lambda rank: (where[rank].state not in ("raised", "died"), rank))
        if kind in (RankError, RankDied)
        else sorted(where)
    )
    lines = [title, *_rows(where, order)]
    if edge_list:
        lines.append(
            SENTENCES["edges"].format(edges=", ".join(f"{a} -> {b}" for a, b in edge_list))
        )
    lines += left_open
    if cause:
        lines.append(SENTENCES["cause"].format(cause=cause))
    fault = kind(_capital(title.split(": ", 1)[-1]).rstrip("."), waiting, culprits, traceback)
    fault.text, fault.edges = "\n".join(lines), edge_list
    if edge_list or kind in (Hang, RankDied):
        fault.svg = draw_wait_for_graph(where, edge_list)
    return fault


def _rows(where: dict[int, Where], order: Iterable[int]) -> list[str]:
    """What the ranks did, in this order, as rows of the report.

    Ranks that did the same share a row, and each place is written out only where it is first.
    """
    alike: dict[tuple[str | tuple[str, str], ...], list[int]] = {}
    first_at: dict[tuple[str, str], list[int]] = {}
    for rank in order:
        alike.setdefault((where[rank].describe(), *where[rank].callers), []).append(rank)
    labels = {key: ranks_text(ranks) for key, ranks in alike.items()}
    width, lines = min(max(map(len, labels.values()), default=0), WIDEST_LABEL), []
    for key, ranks in alike.items():
        here = where[ranks[0]]
        first = first_at.setdefault((here.place, here.source), ranks) if here.place else ranks
        same = first if first is not ranks else ()
        lines.append(f"  {labels[key]:<{width}}  {of_ranks(ranks, here.describe(same))}")
        if not same or here.callers != where[first[0]].callers:
            lines += [
                " " * (width + 4)
                + SENTENCES["called from"].format(place=place, source=source.strip())
                for place, source in here.callers
            ]
    return lines


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _cause_of_waiting(sentence: str, waiting: dict[int, Where], culprits: list[int]) -> str:
    return (
        SENTENCES[sentence].format(waiters=ranks_text(waiting), culprits=ranks_text(culprits))
        if waiting
        else ""
    )


def _known(error: RaisedError, unmade: Callable[[str], str | None]) -> str:
    if error["memory"]:
        return SENTENCES["out of memory"]
    if error["ename"] == "SystemExit":
        return SENTENCES["exit"]
    for fragment, sentence in KNOWN_ERRORS.items():
        if fragment in error["evalue"]:
            return SENTENCES[sentence]
    if error["ename"] == "NameError" and "'" in error["evalue"]:
        name = error["evalue"].split("'")[1]
        head = unmade(name)
        if head is not None:
            return SENTENCES["name unmade"].format(name=name, head=head)
        return SENTENCES["name here" if in_this_kernel(name) else "name lost"].format(name=name)
    return ""
