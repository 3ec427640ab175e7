"""How the checks of unit 18 judge.

Every `..._problem` returns None or the details of a FAIL line.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from manyhands.checks.elastic_training.messages import MISTAKES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from manyhands.checks.elastic_training.answers import (
        Fingerprint,
        IntervalCase,
        LoopRecord,
        Read,
        ReshardCase,
    )
    from manyhands.checks.elastic_training.disk_faults import Read as ReadState
    from manyhands.checks.report import Problem


def say(mistake: str, expected: Any = None, got: Any = None, **words: Any) -> Problem:
    """Return the details of a FAIL line, with a mistake's text and the words in it."""
    details: Problem = {}
    if expected is not None:
        details["expected"] = expected
    if got is not None:
        details["got"] = got
    return {**details, "mistake": MISTAKES[mistake].format(**words)}


# ------------------------------------------------------------------ 1: checkpoint


def read_problem(read: ReadState, step: int, total: float) -> Problem | None:
    """Judge what `latest` returned.

    The newest whole checkpoint is the one of `step` (-1: there is none), whose state adds up to
    `total`.
    """
    if read.step == -3:
        return say("raises", error=read.error.rstrip(" .:"))
    if step == -1:
        return None if read.step == -1 else say("none in an empty folder")
    if read.step == -2:
        return say("no pair")
    if read.step == -1:
        return say("nothing left", wanted=step)
    if read.step != step:
        as_text = read.step < step and str(read.step) > str(step)
        return say(
            "newer" if read.step > step else "sorted as text" if as_text else "older",
            found=read.step,
            wanted=step,
        )
    return None if math.isclose(read.total, total, rel_tol=1e-9) else say("other state")


def power_problem(events: Sequence[tuple[Any, ...]], sizes: Mapping[int, int]) -> Problem | None:
    """Judge the `events` of one call of save (see `Saved`).

    `sizes` is {inode: size} of the files that exist afterwards.
    """
    renames = [i for i, (kind, *_) in enumerate(events) if kind == "rename"]
    if not renames:
        return say("never renamed")
    for i in renames:
        _, moved, _, elsewhere = events[i]
        if elsewhere:
            return say("from elsewhere")
        for inode, size in moved:
            if inode in sizes and sizes[inode] != size:
                return say("too early", early=size, size=sizes[inode])
            if not {("sync", inode, size), ("sync all",)} & {tuple(event) for event in events[:i]}:
                return say("no sync")
    return next(filter(None, (_folder_problem(events[i:]) for i in renames)), None)


def _folder_problem(events: Sequence[tuple[Any, ...]]) -> Problem | None:
    """Judge whether the folder of a rename is synced after it. `events` begin with the rename."""
    (_, _, folder, _), *later = events
    if ("sync all",) in later or ("sync", folder, -1) in later:
        return None
    return say(
        "other folder"
        if any(event[0] == "sync" and event[2] == -1 for event in later)
        else "no folder sync"
    )


# ------------------------------------------------------------------ 2: state


def part_problem(
    then: Fingerprint | None, right: Fingerprint, parts: Sequence[str]
) -> Problem | None:
    """Report the first of the parts that differs after the restore.

    Its numbers are not the numbers that it had when state_of was called.
    """
    wrong = [part for part in parts if then is None or then[part] != right[part]]
    return say(wrong[0], right[wrong[0]], then and then[wrong[0]]) if wrong else None


def losses_problem(losses: Sequence[float], right: Sequence[float]) -> Problem | None:
    """Report the first step whose loss differs from the undisturbed training run."""
    apart = [i for i, (mine, ours) in enumerate(zip(losses, right, strict=True), 1) if mine != ours]
    return say("end", right[apart[0] - 1], losses[apart[0] - 1], step=apart[0]) if apart else None


# ------------------------------------------------------------------ 4: reshard


def piece_size(numbers: int, world: int) -> int:
    """Return how many numbers a rank's piece has, with padding."""
    return -(-numbers // world)


def wanted(numbers: int, new: int, rank: int) -> tuple[int, int]:
    """Return (start, stop) of a new rank's numbers among all."""
    size = piece_size(numbers, new)
    return min(numbers, rank * size), min(numbers, (rank + 1) * size)


def triples(answer: Any) -> list[Read] | None:
    """Return the learner's reads as [(old rank, start, stop)], or None if they are no such list."""
    try:
        reads = [tuple(int(value) for value in read) for read in answer if len(read) == 3 or 1 / 0]
    except Exception:  # noqa: BLE001 - a learner's answer may be anything
        return None
    return cast("list[Read]", reads)


def reads_problem(
    case: ReshardCase, reads: Sequence[Read] | None, pieces: Any
) -> tuple[Problem | None, list[float]]:
    """Return (problem, the numbers that were read). `case`: (numbers, old, new, rank)."""
    numbers, old, new, rank = case
    if reads is None:
        return say("no reads"), []
    got: list[float] = []
    for old_rank, start, stop in reads:
        if not 0 <= old_rank < old or not 0 <= start <= stop <= len(pieces[0]):
            return say("outside", old=old_rank, start=start, stop=stop, size=len(pieces[0])), got
        got += pieces[old_rank][start:stop].tolist()
    start, stop = wanted(numbers, new, rank)
    right = np.concatenate(pieces)[start:stop].tolist()
    if got == right:
        return None, got
    if 0.0 in got:  # no number of the check is zero
        return say("padding", numbers=numbers), got
    return _other_numbers(case, right, got), got


def _other_numbers(case: ReshardCase, right: Any = None, got: Any = None) -> Problem:
    numbers, old, new, rank = case
    start, stop = wanted(numbers, new, rank)
    if start == stop:
        return say("nothing to read", rank=rank, new=new)
    return say(
        "other numbers",
        right,
        got,
        numbers=numbers,
        old=old,
        rank=rank,
        new=new,
        start=start,
        last=stop - 1,
    )


def least_problem(case: ReshardCase, reads: Sequence[Read] | None) -> Problem | None:
    """Judge whether a rank reads only what it needs, and from each piece once."""
    numbers, old, new, rank = case
    if reads is None:
        return say("no reads")
    start, stop = wanted(numbers, new, rank)
    read = sum(max(0, last - first) for _, first, last in reads)
    if read > stop - start:
        return say("too many numbers", rank=rank, new=new, found=read, wanted=stop - start)
    if read < stop - start:
        return _other_numbers(case)
    size = piece_size(numbers, old)
    for old_rank, first, last in reads:
        if not (
            start <= old_rank * size + first
            and old_rank * size + last <= stop
            and 0 <= first <= last <= size
        ):
            return say("not its own", rank=rank, new=new, old=old_rank, start=first, stop=last)
    empty = [(first, last) for _, first, last in reads if first >= last]
    if empty:
        return say("empty read", start=empty[0][0], stop=empty[0][1])
    pieces = [piece for piece, *_ in reads]
    twice = [piece for piece in pieces if pieces.count(piece) > 1]
    return say("two reads", old=twice[0], times=pieces.count(twice[0])) if twice else None


# ------------------------------------------------------------------ 5: rollback


def due(record: LoopRecord, right: LoopRecord) -> list[int]:
    """Return the number of whole steps before each commit.

    A commit after the last step is left out, because it is optional.
    """
    return [steps for steps in record["commits"] if steps < right["steps"]]


def commits_problem(record: LoopRecord, right: LoopRecord) -> Problem | None:
    """Judge when the learner's loop has committed."""
    mine, ours = due(record, right), due(right, right)
    if mine != ours and (problem := _no_group_problem(record["events"])):
        return problem
    if not mine or mine[0] != 0:
        return say("no first commit")
    if mine == ours:
        return None
    apart = next(
        (i for i, (commit, other) in enumerate(zip(mine, ours, strict=False)) if commit != other),
        min(len(mine), len(ours)),
    )
    if apart in (len(mine), len(ours)):
        return say(
            "commits missing" if apart == len(mine) else "commits too many",
            found=len(mine),
            wanted=len(ours),
        )
    return say("commits late", number=apart + 1, found=mine[apart], wanted=ours[apart])


def event_problem(kind: str, record: LoopRecord, right: LoopRecord) -> Problem | None:
    """Judge what the loop did about the events of this kind.

    Each is (kind, rollbacks, steps that were tried without a new group, ranks in the next whole
    step).
    """
    mine, ours = (
        [event for event in loop["events"] if event[0] == kind] for loop in (record, right)
    )
    if problem := _no_group_problem(mine):
        return problem
    rollbacks = sum(event[1] for event in mine)
    if kind == "lost" and any(event[1] == 0 for event in mine):
        return say("kept half a step")
    if kind == "joined" and rollbacks:
        return say("rolled back for nothing", found=rollbacks)
    return None if len(mine) == len(ours) else say("not reached", found=len(mine), wanted=len(ours))


def _no_group_problem(events: Sequence[Sequence[Any]]) -> Problem | None:
    """Report the first event after which a step was tried before a new group was formed."""
    kind = next((kind for kind, _, tried, _ in events if tried), None)
    if kind is None:
        return None
    return say("no regroup", event={"lost": "RankLost", "joined": "RanksJoined"}[kind])


def loop_problem(got: Sequence[float], right: Sequence[float], until: float) -> Problem | None:
    """Judge the state at the end of the learner's loop.

    It is [images seen, ranks, sums of the weights].
    """
    if got == right:
        return None
    if got[0] < until or got[0] > right[0]:
        return say(
            "not the end" if got[0] < until else "too far",
            found=got[0],
            wanted=until,
            enough=right[0],
        )
    return say("other weights", right[2:], got[2:])


# ------------------------------------------------------------------ 6: interval


def young_steps(step_s: Any, save_s: Any, lives_s: Any, ranks: int) -> int:
    """Return the steps between two checkpoints by Young's formula, at least one."""
    return max(
        1, round(math.sqrt(2 * np.mean(save_s) * np.mean(lives_s) / ranks) / np.mean(step_s))
    )


def steps_problem(case: IntervalCase, got: float) -> Problem | None:
    """Judge the number of steps between two checkpoints."""
    _, save_s, _, ranks = case
    right = young_steps(*case)
    if got == right:
        return None
    step, save, life = (float(np.mean(times)) for times in case[:3])
    wrong = {
        "all ranks": math.sqrt(2 * save * life) / step,
        "times ranks": math.sqrt(2 * save * life * ranks) / step,
        "without 2": math.sqrt(save * life / ranks) / step,
        "median": math.sqrt(2 * float(np.median(save_s)) * life / ranks) / step,
    }
    seconds = math.sqrt(2 * save * life / ranks)
    if abs(got - seconds) <= 0.5 + 1e-9:
        return say("seconds", right, got)
    if got < 1:
        return say("no step", right, got)
    exact = seconds / step
    rounded = "rounded" if right > 1 and abs(got - exact) < 1 else "other steps"
    name = next((name for name, value in wrong.items() if abs(got - value) <= 0.5 + 1e-9), rounded)
    return say(name, right, got, ranks=ranks, exact=exact)


def lost_part(every_s: float, save_s: float, restart_s: float, mtbf_s: float) -> float:
    """Return the part of the time that is lost by checkpoints and failures."""
    return save_s / every_s + (every_s / 2 + restart_s) / mtbf_s


def lost_part_problem(case: tuple[float, float, float, float], got: float) -> Problem | None:
    """Judge the part of the time that is lost."""
    every_s, save_s, restart_s, mtbf_s = case
    right = lost_part(*case)
    if math.isclose(got, right, rel_tol=1e-6):
        return None
    wrong = {
        "whole interval": save_s / every_s + (every_s + restart_s) / mtbf_s,
        "no restart": save_s / every_s + every_s / 2 / mtbf_s,
        "no save": (every_s / 2 + restart_s) / mtbf_s,
    }
    return say(
        next(
            (name for name, value in wrong.items() if math.isclose(got, value, rel_tol=1e-6)),
            "other lost",
        ),
        right,
        got,
    )
