"""The first calls of the ranks that do not fit together, in a cell that has ended or hangs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manyhands.cluster.faults.fault_messages import SENTENCES, ranks_text
from manyhands.cluster.faults.hang_causes import members_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from manyhands.cluster.payloads import Note


@dataclass
class MismatchedCalls:
    """The first calls that do not fit together.

    It has what is said of them, the ranks to look at, and the kind of difference.
    """

    text: str
    ranks: list[int]
    # "different calls", "different" (shape or dtype), "different op", "different root", "different
    # group" or "different message"
    kind: str

    @property
    def differs(self) -> str:
        """In what the calls differ: see `Fault`."""
        return {
            "different": "tensors",
            "different message": "tensors",
            "different group": "groups",
            "different calls": "calls",
        }.get(self.kind, "")


def find_mismatch(
    notes: dict[int, list[Note]], uneven_all_gather: bool = False
) -> MismatchedCalls | None:
    """The first calls that do not fit together, or None. `notes` = {rank: its calls}."""
    return _mismatched_collective(notes, uneven_all_gather) or _mismatched_message(notes)


def _mismatched_collective(
    notes: dict[int, list[Note]], uneven_all_gather: bool
) -> MismatchedCalls | None:
    groups: dict[tuple[str, int], dict[int, Note]] = {}
    for rank, calls in notes.items():
        for note in calls:
            if "peer" not in note:  # os._exit has a peer of None: it is no collective
                groups.setdefault((note["group"], note["sequence"]), {})[rank] = note
    for (_, sequence), by_rank in sorted(groups.items(), key=lambda item: item[0][1]):
        if len({note["call"] for note in by_rank.values()}) > 1:
            return _differs("different calls", sequence, by_rank, lambda note: note["call"])
        if any(
            other in by_rank and note["ranks"] != by_rank[other].get("ranks")
            for note in by_rank.values()
            for other in note.get("ranks") or []
        ):
            return _differs(
                "different group",
                sequence,
                by_rank,
                _with("ranks of a group", "ranks", members_text),
            )
        if "all_to_all" in next(iter(by_rank.values()))["call"]:
            continue
        if uneven_all_gather and next(iter(by_rank.values()))["call"] == "all_gather":
            continue
        if len({_tensor(note) for note in by_rank.values()}) > 1:
            return _differs(
                "different", sequence, by_rank, lambda note: f"{note['call']}({_tensor(note)})"
            )
        for argument, sentence in (("op", "different op"), ("root", "different root")):
            if len({note.get(argument) for note in by_rank.values()}) > 1:
                return _differs(sentence, sequence, by_rank, _with(argument, argument))
    return None


def _with(sentence: str, argument: str, text: Callable[[Any], str] = str) -> Callable[[Note], str]:
    """How to say of a note what the call was given as `argument`."""
    return lambda note: SENTENCES[sentence].format(
        call=note["call"], value=text(note.get(argument))
    )


def _tensor(note: Note) -> str:
    return f"{note['dtype']} {note['shape']}" if note.get("dtype") else ""


def _differs(
    sentence: str, sequence: int, by_rank: dict[int, Note], describe: Callable[[Note], str]
) -> MismatchedCalls:
    kinds: dict[str, list[int]] = {}
    for rank, note in sorted(by_rank.items()):
        kinds.setdefault(describe(note), []).append(rank)
    described = ", ".join(
        SENTENCES["is with"].format(what=what, ranks=ranks_text(ranks))
        for what, ranks in kinds.items()
    )
    fewest = min(kinds.values(), key=lambda ranks: (len(ranks), -ranks[0]))
    return MismatchedCalls(
        SENTENCES[sentence].format(number=sequence + 1, described=described), fewest, sentence
    )


def _mismatched_message(notes: dict[int, list[Note]]) -> MismatchedCalls | None:
    sent: dict[tuple[int, int | None, int, int], Note] = {}
    for rank, calls in notes.items():
        for note in calls:
            if note["call"].lstrip("i") == "send":
                sent[rank, note["peer"], note["tag"], note["sequence"]] = note
    for rank, calls in sorted(notes.items()):
        for note in calls:
            source = note.get("peer")
            if note["call"].lstrip("i") == "recv" and source is not None:
                other = sent.get((source, rank, note["tag"], note["sequence"]))
                if other and (other.get("dtype"), _numel(other)) != (
                    note.get("dtype"),
                    _numel(note),
                ):
                    text = SENTENCES["different message"].format(
                        source=source, target=rank, sent=_tensor(other), asked=_tensor(note)
                    )
                    return MismatchedCalls(text, [source, rank], "different message")
    return None


def _numel(note: Note) -> int:
    product = 1
    for size in note.get("shape") or []:
        product *= size
    return product
