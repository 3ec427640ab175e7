"""Checks of unit 18, elastic training and checkpoints.

Everything runs on this machine, without a cluster. What may be killed runs in forks of the
notebook's kernel, as do the ranks of the last exercise.

Kills, full disks and torn files are real, because the kernel ends a fork at a byte of its file, or
before a rename. Sizes, steps, seeds and plans of lost ranks are drawn from the seed. A mistake of
the learner, even an exception, becomes a FAIL line.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.card import SAME
from manyhands.checks.elastic_training import (
    diagnosis,
    disk_faults,
    global_generators,
    lossy_job,
    revived,
    row_diagnosis,
    second_life,
)
from manyhands.checks.elastic_training.disk_faults import Read, files
from manyhands.checks.elastic_training.learners_disk import LearnersDisk
from manyhands.checks.elastic_training.messages import CRITERIA, HINTS
from manyhands.checks.in_kernel import ask, number
from manyhands.checks.report import Stopped

if TYPE_CHECKING:
    from collections.abc import Callable

    from manyhands.checks.elastic_training.answers import Lived, Rows
    from manyhands.checks.report import Problem

__all__ = ["HINTS", "checkpoint", "interval", "life", "reshard", "rollback", "rows", "state"]


class _Check(Report):
    """The report of this unit, with a separate generator.

    The generator is made from the seed and the check's name.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, CRITERIA)
        self.rng = np.random.default_rng([seed() % 2**32, *name.encode()])

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))


def checkpoint(save: Callable[..., Any], latest: Callable[..., Any]) -> None:
    """Check `save(state, folder, step)` and `latest(folder)` -> (step, state) or None."""
    import torch

    with _Check("checkpoint") as report, tempfile.TemporaryDirectory() as name:
        disk, large = (
            LearnersDisk(save, latest, Path(name, folder), report.rng)
            for folder in ("small", "large")
        )
        steps = [report.whole(7, 10)]  # seven saves, whose numbers sort differently as text
        for low in (10, 100, 1000):
            steps += sorted((low + report.rng.choice(9 * low, 2, replace=False)).tolist())
        # the last one fits into Python's buffer of a file
        sizes = {step: 100 if step == steps[-1] else 2000 for step in steps}
        # as text the first is larger, with up to six digits
        sizes |= {report.whole(500_000, 1_000_000): 100, report.whole(1_000_000, 5_000_000): 100}
        disk.states = {
            step: {"weights": torch.from_numpy(report.rng.normal(size=size)), "seen": 10 * step}
            for step, size in sizes.items()
        }
        large.states = {step: disk.states.pop(step) for step in sizes if step >= 500_000}
        _latest(disk, large, report)
        _torn(disk, report)
        _killed(disk, report)
        _full(disk, report)
        _power(disk, report)


def _latest(disk: LearnersDisk, large: LearnersDisk, report: _Check) -> None:
    reads = [disk.read(-1)]
    for drive in (disk, disk, disk, large, large):
        drive.next()
        reads.append(drive.read())
    oldest = min(disk.written)
    times = {path: path.stat() for path in disk.written[oldest] if path.is_file()}
    for path in times:  # it becomes the youngest file, as a copy does
        os.utime(path, ns=(time.time_ns() + 10**10,) * 2)
    problem, read = disk.read()
    reads.append(
        (
            diagnosis.say("by time", found=oldest) if problem and read.step == oldest else problem,
            read,
        )
    )
    for path, was in times.items():
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    report.judge(
        "latest", [problem for problem, _ in reads], [read.numbers for _, read in reads], rtol=1e-9
    )


def _torn(disk: LearnersDisk, report: _Check) -> None:
    before, older = files(disk.folder), disk.newest
    disk.next()
    whole, newest, reads = disk.checkpoints(), disk.written[disk.newest], []
    for part in (0.0, report.rng.uniform(0.1, 0.9), 0.999):
        for path in newest:
            path.write_bytes(whole[path][: int(part * len(whole[path]))])
        problem, read = disk.read(older)
        if problem and read.step in (-1, -3) and set(newest) & set(before):
            problem = diagnosis.say("one file")
        reads.append((problem, read))
    left = [step for step in disk.written if all(path in whole for path in disk.written[step])]
    last: Problem | None = None
    if len(left) > 2:  # a learner who keeps only two has nothing left if both are torn
        for path in {path for step in left[1:] for path in disk.written[step]}:
            path.write_bytes(whole[path][: len(whole[path]) // 2])
        last, _ = disk.read(left[0])
    for path, content in whole.items():
        path.write_bytes(content)
    report.judge(
        "torn",
        [*(problem for problem, _ in reads), last],
        [[read.numbers for _, read in reads], last is None],
        rtol=1e-9,
    )


def _killed(disk: LearnersDisk, report: _Check) -> None:
    """Let the kernel kill save at a byte of the file, then before the rename.

    Afterwards it must still work.
    """
    size = disk_faults.largest(disk.folder)
    at_byte = disk.next(file_bytes=disk.draw_part(size), dies=True)
    reads = [disk.read()]
    at_rename = disk.next(watch="kill")
    if at_rename.killed_by or at_rename.error:
        reads.append(disk.read())
    problems = [problem for problem, _ in reads]
    if at_byte.killed_by == "" and at_byte.error == "":
        problems.append({"mistake": "The file is smaller than the files of earlier steps."})
    if at_rename.killed_by != "SIGKILL":
        problems.insert(
            0,
            diagnosis.say("never renamed") if not at_rename.error else {"mistake": at_rename.error},
        )
    with report.part("killed"):
        disk.next(again=True)
        reads.append(disk.read())
        problems.append(reads[-1][0])
        report.judge(
            "killed",
            problems,
            [[read.numbers for _, read in reads], at_rename.killed_by == "SIGKILL"],
            rtol=1e-9,
        )


def _full(disk: LearnersDisk, report: _Check) -> None:
    """Fill the disk in the middle of the tensors, and near the end.

    torch.save raises a RuntimeError in the first case and an OSError in the second.
    """
    size, before = disk_faults.largest(disk.folder), disk.checkpoints()
    reads, raised = [], []
    for limit in (disk.draw_part(size), int(report.rng.uniform(0.9, 0.97) * size)):
        saved = disk.next(file_bytes=limit)
        raised.append(bool(saved.error or saved.killed_by))
        reads.append(disk.read())
    lost = [
        path
        for path, content in before.items()
        if not path.is_file() or path.read_bytes() != content
    ]
    problems = (
        [problem for problem, _ in reads]
        + [diagnosis.say("swallowed")] * (not all(raised))
        + [diagnosis.say("given up")] * bool(lost)
    )
    with report.part("full"):
        disk.next(again=True)
        reads.append(disk.read())
        report.judge(
            "full",
            [*problems, reads[-1][0]],
            [[read.numbers for _, read in reads], raised, bool(lost)],
            rtol=1e-9,
        )


def _power(disk: LearnersDisk, report: _Check) -> None:
    saved = disk.next(watch="record")
    sizes = {inode: size for inode, size, _ in files(disk.folder).values()}
    problem: Problem | None = {"mistake": saved.error}
    read = Read(-3)
    if not saved.error:
        problem, read = disk.read()
    lacking = diagnosis.power_problem(saved.events, sizes)
    report.judge("power", [problem, lacking], [read.numbers, lacking is None], rtol=1e-9)


def state(state_of: Callable[..., Any], restore: Callable[..., Any]) -> None:
    """Check `state_of(job)` and `restore(job, state)`.

    A training run is killed at a hidden step, and goes on in a new process.
    """
    from manyhands.elastic import job, mortal

    with _Check("state") as report, tempfile.TemporaryDirectory() as name:
        job.warm()
        own, at, steps, file = (
            report.whole(0, 10_000),
            report.whole(14, 30),
            report.whole(45, 60),
            Path(name, "state"),
        )
        then, losses, end = revived.in_process(revived.train_undisturbed, own, steps, at)
        outcome = mortal.in_process(
            revived.train_and_die, state_of, own, at, report.whole(2, 5), file
        )
        if outcome.killed_by != "SIGKILL":
            raise Stopped(outcome.value or outcome.error)
        error, mine, mine_losses, mine_end, twice = revived.in_process(
            revived.revive, restore, own, steps - at, file
        )
        if error and not error.startswith(revived.REFUSED):
            raise Stopped(error)
        changed = file.read_bytes() != revived.later(file).read_bytes()
        problems: list[Problem | None] = (
            [diagnosis.say("not loadable", error=error)]
            if error
            else [
                diagnosis.say("changed later") if changed else None,
                diagnosis.say("shared") if mine != twice else None,
            ]
        )
        report.judge(
            "copy", problems, [mine["weights"] if mine else [], changed, mine == twice], rtol=1e-9
        )
        if error or mine is None or mine_end is None:
            raise Stopped(SAME)
        for criterion, parts in (("learned", revived.PARTS[:3]), ("drawn", revived.PARTS[3:])):
            report.judge(
                criterion,
                [diagnosis.part_problem(mine, then, parts)],
                [mine[part] for part in parts],
                rtol=1e-9,
            )
        apart = [
            diagnosis.losses_problem(mine_losses, losses),
            diagnosis.part_problem(mine_end, end, revived.PARTS),
        ]
        report.judge("equal", apart, [mine_losses, list(mine_end.values())], rtol=1e-9)


def rows(function: Callable[..., Any]) -> None:
    """Check `function(seen, batch, rank, world, images, seed)` -> rows.

    They are the rows of a rank's share of the next batch.
    """
    from manyhands.elastic import job

    with _Check("rows") as report, closed(job.endless):
        images, own = report.whole(60, 90), report.whole(5, 1000)

        def parts(seen: int, batch: int, world: int, one_seed: int = own) -> list[Rows]:
            return [
                row_diagnosis.rows_of(
                    ask(function, seen, batch, rank, world, images, one_seed), images
                )
                for rank in range(world)
            ]

        generators = global_generators.states()
        _shares(report, parts, images)
        batches: list[list[int]] = []
        seen = 0
        # the batch changes on the way, one extends across the border, and the last one over three
        # epochs
        while seen < 5 * images:
            batch = (
                min(report.whole(7, images // 2), 2 * images - seen)
                if seen < 2 * images
                else (images // 3, 5 * images - seen)[seen > 2 * images]
            )
            batches.append([row for part in parts(seen, batch, 3) for row in part or ()])
            seen += batch
        counts = row_diagnosis.counts_of(batches, images)
        orders = {
            (a_seed, epoch): [
                row
                for place in range(epoch * images, (epoch + 1) * images)
                for row in parts(place, 1, 1, a_seed)[0] or ()
            ]
            for a_seed in sorted({own, own + 1, own ^ 1, 0})
            for epoch in (0, 1)
        }
        changed = global_generators.changed(generators)
        problems = [
            row_diagnosis.epochs_problem(counts, images),
            row_diagnosis.orders_problem(orders, images),
            diagnosis.say("global generator", name=changed) if changed else None,
        ]
        report.judge(
            "epoch",
            problems,
            [
                [[int(count.sum()), int(count.min()), int(count.max())] for count in counts],
                row_diagnosis.orders(orders, images),
                changed is None,
            ],
        )


def _shares(report: _Check, parts: Callable[[int, int, int], list[Rows]], images: int) -> None:
    shares: list[tuple[Any, list[Any]]] = []
    worlds: list[tuple[Any, list[Any]]] = []
    for seen in (0, report.whole(1, images // 3)):
        batch = report.whole(images // 4, images // 2 - 2)
        alone, again = (parts(seen, batch, 1)[0] or [] for _ in range(2))
        for world in (2, 3, 4, 5):
            mine = parts(seen, batch, world)
            together = [row for part in mine for row in part or ()]
            shares.append(
                (
                    row_diagnosis.shares_problem(mine, batch, images),
                    [len({*together}), sorted(len(part or ()) for part in mine)],
                )
            )
            worlds.append(
                (
                    row_diagnosis.world_problem(alone, together, again, world),
                    [len({*alone} & {*together}), sorted(alone) == sorted(again)],
                )
            )
    # in each epoch one row is left over, and together they are the rows of two shares
    for world in (2, 3, 4, 5):
        left, batch = world * report.whole(0, 4) + 1, 2 * images * (world == 4)
        batch += left + world * report.whole(1, 4) + 1
        lengths = [len(part or ()) for part in parts(images - left, batch, world)]
        shares.append((row_diagnosis.lengths_problem(lengths, batch), sorted(lengths)))
    report.judge("shares", [problem for problem, _ in shares], [sizes for _, sizes in shares])
    report.judge("world", [problem for problem, _ in worlds], [what for _, what in worlds])


def reshard(function: Callable[..., Any]) -> None:
    """Check `function(numbers, old, new, rank)` -> [(old rank, start, stop)].

    This is what a new rank reads of the old ranks' pieces.
    """
    with _Check("reshard") as report:
        cases = []
        for old, new in ((4, 2), (2, 3), (3, 4), (4, 1), (5, 3), (3, 8), (8, 3)):
            # of 8 pieces the last one is empty
            numbers = 8 * report.whole(2, 5) + 1 if 8 in (old, new) else report.whole(17, 40)
            size = diagnosis.piece_size(numbers, old)
            flat = np.pad(report.rng.uniform(1, 2, numbers), (0, size * old - numbers))
            pieces = flat.reshape(old, size)
            for rank in range(new):
                case = (numbers, old, new, rank)
                reads = diagnosis.triples(ask(function, *case))
                problem, got = diagnosis.reads_problem(case, reads, pieces)
                cases.append((problem, got, diagnosis.least_problem(case, reads), reads))
        report.judge(
            "pieces",
            [problem for problem, *_ in cases],
            [[got, reads is None] for _, got, _, reads in cases],
            rtol=1e-12,
        )
        report.judge(
            "least",
            [problem for *_, problem, _ in cases],
            [-1 if reads is None else sorted(reads) for *_, reads in cases],
        )


def rollback(train: Callable[..., Any]) -> None:
    """Check `train(job, until, every)`, a loop that loses ranks and gains some.

    There are two hidden plans.
    """
    from manyhands.elastic import job

    with _Check("rollback") as report:
        job.warm()
        runs = []
        for _ in range(2):
            own, every, until = (
                report.whole(0, 10_000),
                report.whole(4, 7),
                32 * report.whole(24, 30),
            )
            plan = _plan(report, every)
            _, right, wanted = revived.in_process(
                lossy_job.try_out, lossy_job.right_loop, own, plan, until, every
            )
            until = int(wanted[0])  # reached exactly
            with closed(lossy_job.right_loop):
                error, record, got = revived.in_process(
                    lossy_job.try_out, train, own, plan, until, every
                )
            if error and "is not written yet" in error:
                raise Stopped(error)
            runs.append((error, record, right, got, wanted, until))
        error = next((error for error, *_ in runs if error), None)
        ended: list[Problem | None] = [diagnosis.say("raised", error=error)] if error else []
        commits = [diagnosis.commits_problem(record, right) for _, record, right, *_ in runs]
        early = ended or [
            diagnosis.loop_problem(got, wanted, until)
            for *_, got, wanted, until in runs
            if got[0] < until
        ]
        report.judge(
            "commits",
            early + commits if any(commits) else commits,
            [diagnosis.due(record, right) for _, record, right, *_ in runs],
        )
        let_out, steps = _lets_out_a_bug(train, report), _steps_of_nothing(train, report)
        others: dict[str, list[Problem | None]] = {
            "lost": [None if let_out else diagnosis.say("bug caught", error=lossy_job.BUG)],
            "joined": [],
        }
        for name in ("lost", "joined"):
            events = [
                [
                    (min(1, back), min(1, tried), ranks)
                    for kind, back, tried, ranks in record["events"]
                    if kind == name
                ]
                for _, record, *_ in runs
            ]
            report.judge(
                name,
                [diagnosis.event_problem(name, record, right) for _, record, right, *_ in runs]
                + others[name],
                [events, let_out or name == "joined"],
            )
        problems = (
            ended
            + [diagnosis.loop_problem(got, wanted, until) for *_, got, wanted, until in runs]
            + [diagnosis.say("one step more", found=steps) if steps else None]
        )
        report.judge("equal", problems, [[got for *_, got, _, _ in runs], steps], rtol=1e-9)


def _lets_out_a_bug(train: Callable[..., Any], report: _Check) -> bool:
    """Return whether an error that does not mean a lost rank ends the loop."""
    from manyhands.elastic import mortal

    outcome = mortal.in_process(
        lossy_job.try_out,
        train,
        report.whole(0, 10_000),
        {report.whole(2, 6): ("bug", 0)},
        32 * 12,
        4,
    )
    return bool(outcome.value) and lossy_job.BUG in (outcome.value[0] or "")


def _steps_of_nothing(train: Callable[..., Any], report: _Check) -> int:
    """Return how many steps the loop takes if the end is reached before it begins."""
    _, record, _ = revived.in_process(lossy_job.try_out, train, report.whole(0, 10_000), {}, 0, 4)
    return record["steps"]


def _plan(report: _Check, every: int) -> dict[int, tuple[str, int]]:
    """Return {attempt: what happens in it}.

    These are a loss between two commits, a join, a loss, another loss before the next commit, and
    one more in the very next step.
    """
    first = report.whole(every + 2, 2 * every)
    joined = first + report.whole(2, every)
    second = joined + report.whole(every, 2 * every)
    ranks = report.rng.permutation([1, 2, 3]).tolist()
    return {
        first: ("lost", ranks[0]),
        joined: ("joined", ranks[1] + 3),
        second: ("lost", ranks[1]),
        second + 2: ("lost", 4),
        second + 3: ("lost", ranks[2]),
    }


def interval(steps_between: Callable[..., Any], lost: Callable[..., Any]) -> None:
    """Check `steps_between` and `lost`.

    They are `steps_between(step_s, save_s, lives_s, ranks)` and `lost(every_s, save_s, restart_s,
    mtbf_s)`.
    """
    from manyhands.simulate import survival

    with _Check("interval") as report, closed(survival.young_s, survival.daly_s):
        draw = report.rng
        steps: list[tuple[Any, float]] = []
        parts: list[tuple[Any, float]] = []
        # the last one: a step takes longer than Young's interval
        for ranks, slower in (
            (report.whole(64, 200), 1),
            (report.whole(500, 2000), 1),
            (10**6, 200),
        ):
            case = (
                slower * draw.uniform(0.4, 0.6, 8) * draw.uniform(0.5, 2),
                draw.uniform(20, 30, 6) + np.array([0, 0, 0, 0, 0, 60]),
                draw.exponential(5e6, 12) + 1e6,
                ranks,
            )
            answer = number(ask(steps_between, *(times.tolist() for times in case[:3]), ranks))
            steps.append((case, answer))
            losses = (
                draw.uniform(300, 900),
                draw.uniform(10, 40),
                draw.uniform(60, 200),
                draw.uniform(2e4, 6e4),
            )
            parts.append((losses, number(ask(lost, *losses))))
        report.judge(
            "steps", [diagnosis.steps_problem(*step) for step in steps], [got for _, got in steps]
        )
        report.judge(
            "lost",
            [diagnosis.lost_part_problem(*part) for part in parts],
            [got for _, got in parts],
            rtol=1e-6,
        )


def life(function: Callable[..., Any]) -> None:
    """Check `function(folder, until, batch)` on three ranks.

    The training run is stopped twice between two checkpoints.
    """
    from manyhands.elastic import job, mortal

    with _Check("life") as report, tempfile.TemporaryDirectory() as name:
        job.warm()
        own = report.whole(0, 2**31)
        lives: list[list[Lived]] = []
        stops = [5 * number + report.whole(1, 5) for number in (1, report.whole(2, 4), 5)]
        # a life that begins where the last one ended has not skipped one step
        stops[:2] = [until + (until % 5 == 1) for until in stops[:2]]
        for number, until in enumerate(stops, 1):
            outcomes = mortal.in_ranks(second_life.live, function, name, until, own, ranks=3)
            if why := second_life.broken(outcomes, number):
                raise Stopped(why)
            error = next((outcome.value[0] for outcome in outcomes if outcome.value[0]), None)
            if error:
                raise Stopped(error)
            lives.append([outcome.value for outcome in outcomes])
        made = [[steps for _, steps, *_ in ranks] for ranks in lives]
        report.judge(
            "steps",
            [second_life.steps_problem(lives, stops, own)],
            [made, second_life.others_wrote(lives)],
        )
        report.judge(
            "ranks",
            [second_life.ranks_problem(lives)],
            [stops, second_life.from_rank_0(lives)],
            atol=1e-9,
        )
        report.judge(
            "weights",
            [second_life.weights_problem(lives, stops, own)],
            [ranks[0][-1][:50] for ranks in lives],
            atol=1e-9,
        )
