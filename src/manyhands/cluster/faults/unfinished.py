"""What the ranks have begun and not finished when a cell ends, and what becomes of it.

gloo pairs calls by their number, from cell to cell. So a call that a rank never joined meets that
rank's next call, which may be right and would be blamed. A later cell may still join it. Where the
next cell does not look like that, the call is given up: its group gets new connections, in the same
processes, and no variable is lost.
"""

from __future__ import annotations

import ast
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.faults.kinds import Where
from manyhands.cluster.faults.source_lines import spot_of
from manyhands.cluster.on_rank import agent
from manyhands.cluster.on_rank.recorder import COLLECTIVES
from manyhands.cluster.on_rank.tally import SPARE_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from manyhands.cluster.payloads import (
        Facts,
        FileLine,
        LeftFacts,
        Note,
        Reply,
        Spot,
        TracedCall,
    )

    Group: TypeAlias = tuple[str, tuple[int, ...]]  # (name, members)
    Namer: TypeAlias = Callable[[Sequence[Spot]], tuple[str, str]]  # lines -> (place, source)
    Key: TypeAlias = tuple[str, Group, str, str, int]
    Streams: TypeAlias = dict[tuple[str, int | None, str, int | None, int], int]  # see _streams
    Offsets: TypeAlias = tuple[
        dict[tuple[str, int], int], dict[tuple[int | None, str, int | None, int], int]
    ]
    Condition: TypeAlias = tuple[str, bool]  # (text, whether it must hold)

GRACE_S = 0.3  # for calls that all ranks have joined, and that need a moment more
MOST_REPORTED = 5
KINDS = ("unjoined", "running", "message", "dropped")


@dataclass
class UnfinishedCall:
    """A call that is not finished.

    `group` = (name, members); `ranks` have begun it, `others` have not joined it.
    """

    kind: str  # one of KINDS
    group: Group
    what: str
    lines: list[Spot]  # the learner's lines that led to it
    ranks: set[int]
    others: list[int] = field(default_factory=list)

    def key(self) -> Key:
        """What calls of one line have in common: kind, group, text, file and line."""
        spot: FileLine = self.lines[-1] if self.lines else {"file": "", "line": 0}
        return self.kind, self.group, self.what, spot["file"], spot["line"]


class Unfinished:
    """What is unfinished on the ranks of a cluster, from cell to cell.

    `ask(function, *args)` calls a function on all ranks and returns {rank: answer}; it may raise. A
    `name`, below, turns lines into (place, source).
    """

    def __init__(self, ask: Callable[..., dict[int, Any]]) -> None:
        self._ask = ask
        self.forget()

    def forget(self) -> None:
        """The ranks are new, or their groups."""
        self._facts: dict[int, Facts] = {}
        self.left: list[UnfinishedCall] = []
        self._reported: set[Key] = set()
        self._names: set[str] = set()
        self._offsets: Offsets = ({}, {})
        self._seen: dict[int, int] = {}  # the ranks' `begun` when a look last found nothing left
        self._renewals: Counter[Group] = Counter()  # of each group

    def note(self, results: dict[int, Reply]) -> None:
        """Take in what the ranks have sent with their answers to a cell."""
        self._facts.update(
            {rank: reply["begun"] for rank, reply in results.items() if "begun" in reply}
        )

    def look(self, ranks: Sequence[int], name: Namer, report: bool = True) -> str:
        """After a cell: sentences on what is unfinished and has not been reported yet, or ""."""
        self.left, self._offsets = [], ({}, {})
        if not self._suspicious(ranks):
            return ""
        answers = self._ask(agent.list_unfinished)
        if not _whole(answers, ranks) or any(answer["busy"] for answer in answers.values()):
            return ""  # where a thread of the learner's goes on, nothing can be said yet
        if not _uneven(answers) and any(not call["ended"] for call in _calls(answers)):
            time.sleep(GRACE_S)
            answers = self._ask(agent.list_unfinished)
        # then their lines are needed
        if _uneven(answers) or any(not call["ended"] for call in _calls(answers)):
            answers = self._ask(agent.list_unfinished, True)
        self._facts = {**answers}
        self._names = {variable for answer in answers.values() for variable in answer["names"]}
        self._offsets = _offsets(answers)
        self.left = [*_collectives(answers), *_messages(answers)]
        self._seen = (
            {} if self.left else {rank: answer["begun"] for rank, answer in answers.items()}
        )
        new = [call for call in self.left if report and call.key() not in self._reported]
        self._reported |= {call.key() for call in new}
        return _report(new, len(ranks), name) if new else ""

    def _suspicious(self, ranks: Sequence[int]) -> bool:
        """Whether the ranks' facts look unfinished: cheap, for it is asked after each cell."""
        return _whole(self._facts, ranks) and (
            any(facts["begun"] > self._seen.get(rank, 0) for rank, facts in self._facts.items())
            or bool(_uneven(self._facts))
        )

    def to_give_up(self, code: str | None, everywhere: bool) -> list[UnfinishedCall]:
        """What the next cell, whose text is `code`, does not go on with.

        `everywhere`: it runs on all ranks. None as a text: a function that may communicate.
        """
        dropped = [call for call in self.left if call.kind == "dropped"]
        unjoined = [call for call in self.left if call.kind == "unjoined"]
        if unjoined and code is not None and (not everywhere or self._goes_on(code, unjoined)):
            unjoined = []
        return dropped + unjoined

    def _goes_on(self, code: str, unjoined: list[UnfinishedCall]) -> bool:
        """Whether a cell that runs on all ranks is meant to finish what an earlier one has begun.

        It uses a variable that holds it, or it makes a call on just those ranks that have not
        joined.
        """
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError):  # magics, for one
            return bool(self._names & set(re.findall(r"\w+", code)))
        if any(isinstance(node, ast.Name) and node.id in self._names for node in ast.walk(tree)):
            return True
        calls = [conditions for conditions in _conditions(tree.body, []) if conditions]
        if not calls:
            return False
        there = self._ask(agent.conditions_hold, calls)
        called_on = [
            {rank for rank in there if there[rank][number]} for number in range(len(calls))
        ]
        return any(
            on & set(call.group[1]) == set(call.others) for on in called_on for call in unjoined
        )

    def reported_before(self, left: list[UnfinishedCall]) -> list[UnfinishedCall]:
        """Those of `left` that a cell has reported."""
        return [call for call in left if call.key() in self._reported]

    def give_up(self, given_up: list[UnfinishedCall]) -> bool:
        """New connections for the groups of `given_up`.

        False where they have had all that are possible.
        """
        groups = sorted({call.group for call in given_up})
        renewals = self._renewals + Counter(groups)
        if max(renewals.values()) > len(SPARE_KINDS):
            return False
        self._ask(agent.renew_groups, [[name, list(members)] for name, members in groups])
        self.forget()
        self._renewals = renewals
        return True

    def shifted(self, notes: dict[int, list[Note]]) -> dict[int, list[Note]]:
        """The ranks' notes of a cell, numbered on from what earlier cells have left."""
        collectives, messages = self._offsets
        if not collectives and not messages:
            return notes
        return {
            rank: [_shifted(rank, note, collectives, messages) for note in calls]
            for rank, calls in notes.items()
        }

    def before_text(self, name: Namer) -> str:
        """What was left by earlier cells, for the report of a cell that did not end well; or ""."""
        return "\n".join(
            describe_first(
                self.left,
                lambda call: SENTENCES["left before" if call.others else "was left"].format(
                    **message_fields(call, name)
                ),
            )
        )


# --- what the ranks' facts amount to --------------------------------------------------------------


def _whole(facts: Mapping[int, Facts], ranks: Sequence[int]) -> bool:
    """Whether all ranks have a world, the one of this cluster."""
    return all(
        facts.get(rank) and (facts[rank]["rank"], facts[rank]["size"]) == (rank, len(ranks))
        for rank in ranks
    )


def _uneven(facts: Mapping[int, Facts]) -> dict[Group, dict[int, int]]:
    """The groups in which the ranks have begun more or fewer collectives than each other.

    The result is {(name, members): {rank: number of collectives}}.
    """
    groups: dict[Group, dict[int, int]] = {}
    for rank, answer in facts.items():
        for name, members, number in answer["groups"]:
            groups.setdefault((name, tuple(members)), {})[rank] = number
    return {
        group: numbers
        for group, numbers in groups.items()
        if set(numbers) == set(group[1]) and len(set(numbers.values())) > 1
    }


def _calls(answers: dict[int, LeftFacts]) -> list[TracedCall]:
    return [
        call for answer in answers.values() for calls in answer["calls"].values() for call in calls
    ]


def _collectives(answers: dict[int, LeftFacts]) -> list[UnfinishedCall]:
    unfinished: dict[Key, UnfinishedCall] = {}
    uneven = _uneven(answers)
    for group, numbers in uneven.items():
        fewest = min(numbers.values())
        ahead = {rank for rank in numbers if numbers[rank] > fewest}
        # the first that others have not joined: of the next ones nothing needs to be said
        for rank in ahead:
            calls = answers[rank]["calls"].get(group[0], [])[fewest - numbers[rank] :]
            for call in calls[:1] or [
                {"call": SENTENCES["a call"], "shape": None, "dtype": "", "lines": []}
            ]:
                _add(
                    unfinished,
                    "unjoined",
                    group,
                    call,
                    rank,
                    [other for other in group[1] if other not in ahead],
                )
    for rank, answer in answers.items():
        for name, members, _ in answer["groups"]:
            for call in (
                answer["calls"].get(name, []) if (name, tuple(members)) not in uneven else ()
            ):
                if not call["ended"]:
                    _add(unfinished, "running", (name, tuple(members)), call, rank, [])
    return list(unfinished.values())


def _add(
    calls: dict[Key, UnfinishedCall],
    kind: str,
    group: Group,
    call: TracedCall,
    rank: int,
    others: list[int],
) -> None:
    """Note a call of one rank: the same call of several ranks is one `UnfinishedCall`."""
    what = Where(rank, "waits", call=call["call"], shape=call["shape"], dtype=call["dtype"]).what()
    new = UnfinishedCall(kind, group, what, call["lines"], {rank}, others)
    calls.setdefault(new.key(), new).ranks.add(rank)


def _messages(answers: dict[int, LeftFacts]) -> list[UnfinishedCall]:
    """The messages that were begun and that the other side has not asked for.

    Messages that were dropped are among them.
    """
    streams, unfinished = _streams(answers), []
    for rank, answer in answers.items():
        groups = {name: tuple(members) for name, members, _ in answer["groups"]}
        for note in answer["messages"]:
            peer, receives = note["peer"], "recv" in note["call"]
            met = _met(note, rank, streams)
            if note["group"] not in groups or (met and not (note["dropped"] and receives)):
                continue
            what = Where(
                rank,
                "waits",
                call=note["call"],
                shape=note.get("shape"),
                dtype=note.get("dtype", ""),
                peer=peer,
                tag=note["tag"],
            ).what()
            kind = "dropped" if note["dropped"] else "message"
            unfinished.append(
                UnfinishedCall(
                    kind,
                    (note["group"], groups[note["group"]]),
                    what,
                    [spot_of(note)],
                    {rank},
                    [] if met or peer is None else [peer],
                )
            )
    return unfinished


def _streams(answers: dict[int, LeftFacts]) -> Streams:
    """{(group, rank, "send" or "recv", peer, tag): how many}."""
    return {
        (group, rank, kind, peer, tag): number
        for rank, answer in answers.items()
        for group, kind, peer, tag, number in answer["streams"]
    }


def _met(note: Note, rank: int, streams: Streams) -> bool:
    """Whether the other side has begun its part of a message."""
    other = "recv" if "send" in note["call"] else "send"
    sides = [
        number
        for (group, side, kind, peer, tag), number in streams.items()
        if (group, kind, tag) == (note["group"], other, note["tag"])
        and peer in (rank, None)
        and note["peer"] in (side, None)
    ]
    return sum(sides) > note["index"]


def _offsets(answers: dict[int, LeftFacts]) -> Offsets:
    """By how much the ranks are ahead of each other.

    The result is ({(group, rank): collectives}, {(rank, kind, peer, tag): messages that the other
    side has not met}).
    """
    collectives = {
        (name, rank): number - min(numbers.values())
        for (name, _), numbers in _uneven(answers).items()
        for rank, number in numbers.items()
    }
    messages: dict[tuple[int | None, str, int | None, int], int] = {}
    streams = _streams(answers)
    for (group, rank, kind, peer, tag), number in streams.items():
        met = streams.get((group, peer, "recv" if kind == "send" else "send", rank, tag), 0)
        if number > met:
            messages[rank, kind, peer, tag] = number - met
    return collectives, messages


def _shifted(
    rank: int,
    note: Note,
    collectives: dict[tuple[str, int], int],
    messages: dict[tuple[int | None, str, int | None, int], int],
) -> Note:
    if "tag" in note:
        more = messages.get((rank, note["call"].lstrip("i"), note.get("peer"), note["tag"]), 0)
    else:
        more = collectives.get((note["group"] or "0", rank), 0)
    return {**note, "sequence": note["sequence"] + more} if more else note


# --- what the next cell is about ------------------------------------------------------------------


def _conditions(body: Iterable[ast.AST], conditions: list[Condition]) -> list[list[Condition]]:
    """For each collective in these statements, the conditions under which it is called.

    The result is [(text, whether it must hold), ...]. Calls under a condition that itself calls
    something are left out, because it is evaluated on the ranks.
    """
    per_call = []
    for node in body:
        if isinstance(node, (ast.If, ast.IfExp)):
            branches: list[tuple[Any, bool]] = (
                [(node.body, True), (node.orelse, False)] if _is_plain(node.test) else []
            )
            for branch, wanted in branches:
                inside: Sequence[ast.AST] = branch if isinstance(branch, list) else [branch]
                per_call += _conditions(inside, [*conditions, (ast.unparse(node.test), wanted)])
            continue
        if isinstance(node, ast.Call) and _called(node) in COLLECTIVES:
            per_call.append(conditions)
        per_call += _conditions(ast.iter_child_nodes(node), conditions)
    return per_call


def _is_plain(test: ast.expr) -> bool:
    return all(
        _called(node) in ("get_rank", "get_world_size")
        for node in ast.walk(test)
        if isinstance(node, ast.Call)
    )


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


# --- what is said ---------------------------------------------------------------------------------


def message_fields(call: UnfinishedCall, name: Namer) -> dict[str, str]:
    """What the sentences on an `UnfinishedCall` name."""
    place, source = name(call.lines)
    return {
        "what": call.what,
        "place": place or SENTENCES["no place"],
        "source": source.strip(),
        "ranks": ranks_text(call.ranks),
        "group": ranks_text(call.group[1]),
        "others": ranks_text(call.others) if call.others else SENTENCES["the other side"],
    }


def describe_first(left: list[UnfinishedCall], say: Callable[[UnfinishedCall], str]) -> list[str]:
    """What `say` makes of the first of them, and how many more there are.

    A loop may leave hundreds.
    """
    more = len(left) - MOST_REPORTED
    return [say(call) for call in left[:MOST_REPORTED]] + (
        [SENTENCES["more left"].format(number=more)] if more > 0 else []
    )


def _report(left: list[UnfinishedCall], world_size: int, name: Namer) -> str:
    def say(call: UnfinishedCall) -> str:
        fields = message_fields(call, name)
        kind = (
            "left dropped and unmet"
            if call.kind == "dropped" and call.others
            else f"left {call.kind}"
        )
        inside = call.kind in ("unjoined", "running") and len(call.group[1]) < world_size
        return (
            SENTENCES["left"].format(**fields).rstrip(": ")
            + "\n    "
            + SENTENCES[kind].format(**fields)
            + (" " + SENTENCES["in group"].format(**fields) if inside else "")
        )

    lines = [SENTENCES["title left"], *describe_first(left, say)]
    lines += [
        SENTENCES[f"advice {kind}"] for kind in KINDS if any(call.kind == kind for call in left)
    ]
    return "\n".join(lines)
