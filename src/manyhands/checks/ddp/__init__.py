"""Checks of unit 06, DistributedDataParallel, which ask the ranks and judge the answers.

Each check cell calls one of the public functions with the cluster and the names of what the learner
has defined on the ranks. The experiments run there (`ranks` and the modules `..._ranks`). A hang
becomes FAIL lines, and the cluster heals.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from manyhands.checks import Report, seed
from manyhands.checks.ddp import (
    batch_file,
    batch_file_diagnosis,
    bug_diagnosis,
    diagnosis,
    no_sync_diagnosis,
    sampler_criteria,
)
from manyhands.checks.ddp import fine_tuning_diagnosis as tuning
from manyhands.checks.ddp.messages import CRITERIA, HINTS, MISTAKES
from manyhands.checks.on_ranks import RankReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from manyhands.checks.ddp.answers import (
        AccumulationAnswer,
        BackwardAnswer,
        Cuts,
        FlightCase,
        SilentAnswer,
        StateCase,
        StepsCase,
        TrainingAnswer,
        TunedAnswer,
        UnusedAnswer,
    )
    from manyhands.checks.ddp.sampler_criteria import SamplerCase
    from manyhands.checks.report import Problem
    from manyhands.cluster import Cluster

    C = TypeVar("C", StateCase, FlightCase, StepsCase)

__all__ = [
    "HINTS",
    "broadcast",
    "buckets",
    "bug",
    "fine_tuning",
    "flight",
    "hooks",
    "job",
    "no_sync",
    "sampler",
]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)
_runs = itertools.count()  # numbers the experiments in which one rank waits for another


# ------------------------------------------------------------------ 1: broadcast_state


def broadcast(cluster: Cluster, function: str) -> None:
    """Check that `function(model, group)` gives every rank the state of the group's first rank.

    The state must change in place.
    """
    with check("broadcast", cluster) as report:
        answers: list[list[StateCase]] = report.on_ranks(
            "ddp.ranks", "broadcast", function, seed(), remark="group"
        )
        by_group = _by_group(answers)
        for name, wanted in (("parameters", True), ("buffers", False)):
            problems = [diagnosis.state_problem(group, wanted) for group in by_group]
            values = [
                [
                    case["same objects"] or not wanted,
                    case["same flags"] or not wanted,
                    diagnosis.in_place(case, wanted),
                    [
                        _sample(tensor)
                        for i, tensor in enumerate(case["after"])
                        if diagnosis.is_plain(case, i) == wanted
                    ],
                ]
                for group in by_group
                for case in group.values()
            ]
            report.judge(name, problems, values, atol=diagnosis.ATOL)


def _by_group(answers: Sequence[Sequence[C]]) -> list[dict[int, C]]:
    """One dict {rank: case} for each group that the ranks have been through."""
    groups: dict[tuple[int, ...], dict[int, C]] = {}
    for rank, cases in enumerate(answers):
        for case in cases:
            groups.setdefault(tuple(case["members"]), {})[rank] = case
    return list(groups.values())


def _ranked(by_group: Iterable[dict[int, C]]) -> list[tuple[int, C]]:
    """(rank, case) of all groups."""
    return [(rank, case) for group in by_group for rank, case in group.items()]


def _sample(tensor: list[float] | None) -> list[float] | None:
    """A few of a tensor's numbers, as evidence; None stays None."""
    return tensor and [*tensor[:3], sum(tensor)]


# ------------------------------------------------------------------ 2: make_buckets


def buckets(cluster: Cluster, function: str) -> None:
    """Check which parameters `function(parameters, bucket_bytes)` puts together, in which order."""
    with check("buckets", cluster) as report:
        by_type: list[Cuts]
        by_type, *_ = report.on_ranks("ddp.ranks", "buckets", function, seed())
        cuts = [(facts, cut) for facts in by_type for cut in facts["cuts"]]
        problems = (
            diagnosis.cut_problem(cut["bucket_bytes"], cut["got"], facts) for facts, cut in cuts
        )
        sizes = [
            [sum(facts["bytes"].get(name, 0) for name in bucket) for bucket in cut["got"]]
            for facts, cut in cuts
        ]
        report.judge("cut", problems, [sizes, [cut["got"] for _, cut in cuts]])


# ------------------------------------------------------------------ 3: launch and land


def flight(cluster: Cluster, launch: str, land: str) -> None:
    """Check `launch(bucket, group)` and `land(bucket, launched, group)`.

    A bucket must be one message, and no rank may wait for it in `launch`.
    """
    with check("flight", cluster) as report:
        answers: list[list[FlightCase]] = report.on_ranks(
            "ddp.ranks", "flight", launch, land, seed(), next(_runs), remark="flight"
        )
        by_group = _by_group(answers)
        cases = _ranked(by_group)
        problems = (diagnosis.launch_problem(rank, case) for rank, case in cases)
        report.judge(
            "launch",
            problems,
            [[case["sent"], case["at launch"], case["blocked"]] for _, case in cases],
        )
        report.judge(
            "land",
            map(diagnosis.land_problem, by_group),
            [[case["got"], case["shapes"]] for _, case in cases],
            atol=diagnosis.ATOL,
        )


# ------------------------------------------------------------------ 4: hooks


def hooks(cluster: Cluster, ddp: str, finish: str) -> None:
    """Check the class `ddp` and `finish(ddp)`.

    The gradients must be right, and they must be sent while backward is still running.
    """
    with check("hooks", cluster) as report:
        with report.part("mean", "overlap"):
            stepped: list[list[StepsCase]] = report.on_ranks(
                "ddp.step_ranks", "hooks", ddp, finish, seed(), next(_runs), remark="group"
            )
            cases = _ranked(_by_group(stepped))
            problems = diagnosis.blame_start(
                (
                    diagnosis.step_problem(rank, case, step)
                    for rank, case in cases
                    for step in (0, 1)
                ),
                [case for _, case in cases],
            )
            values: list[Any] = [
                _sample(gradient)
                for _, case in cases
                for step in case["steps"]
                for gradient in step["got"].values()
            ]
            report.judge("mean", problems, values, atol=diagnosis.ATOL)
            turned: list[BackwardAnswer] = report.on_ranks(
                "ddp.step_ranks", "backwards", ddp, finish, seed()
            )
            after: list[SilentAnswer] = report.on_ranks(
                "ddp.no_sync_ranks", "silent_hooks", ddp, finish, seed()
            )
            problems = [
                *(
                    diagnosis.overlap_problem(rank, case, step)
                    for rank, case in cases
                    for step in (0, 1)
                ),
                *(diagnosis.backwards_problem(rank, answer) for rank, answer in enumerate(turned)),
                *(
                    no_sync_diagnosis.hooks_problem(rank, answer)
                    for rank, answer in enumerate(after)
                ),
            ]
            values = [
                [case["blocked"], [step["events"] for step in case["steps"]]] for _, case in cases
            ]
            report.judge(
                "overlap",
                problems,
                [
                    values,
                    [answer["events"] for answer in turned],
                    [[answer["sent"], answer["events"]] for answer in after],
                ],
            )
        answers: list[UnusedAnswer] = report.on_ranks(
            "ddp.step_ranks", "unused", ddp, finish, seed(), remark="unused order"
        )
        problems = diagnosis.blame_start(
            (diagnosis.unused_problem(rank, answer) for rank, answer in enumerate(answers)), answers
        )
        values = [
            gradient
            for answer in answers
            for name, gradient in answer["got"].items()
            if "nobody" not in name
        ]
        report.judge("unused", problems, values, atol=diagnosis.ATOL)


# ------------------------------------------------------------------ 5: no_sync


def no_sync(cluster: Cluster, ddp: str, finish: str, function: str) -> None:
    """Check the context manager `function(ddp)`.

    Gradients must accumulate in silence, whatever happens in the block, and the next backward pass
    must send their sum.
    """
    with check("no-sync", cluster) as report:
        answers: list[AccumulationAnswer] = report.on_ranks(
            "ddp.no_sync_ranks", "accumulation", ddp, finish, function, seed()
        )
        problems: Iterable[Problem | None] = (
            no_sync_diagnosis.silence_problem(rank, answer) for rank, answer in enumerate(answers)
        )
        report.judge(
            "silent", problems, [[answer["sent"], answer["promises"]] for answer in answers]
        )
        problems = diagnosis.blame_start(
            (
                no_sync_diagnosis.sum_problem(rank, answer, len(answers))
                for rank, answer in enumerate(answers)
            ),
            answers,
        )
        report.judge(
            "sum",
            problems,
            [list(answer["got"].values()) for answer in answers],
            atol=diagnosis.ATOL,
        )


# ------------------------------------------------------------------ 6: sampler


def sampler(cluster: Cluster, sampler_class: str) -> None:
    """Check the class `sampler_class(n, rank, world_size, seed)`.

    It decides which rank sees which sample in which epoch. Everything but this function and the
    hint is in `sampler_criteria`.
    """
    with check("sampler", cluster) as report:
        cases: list[SamplerCase]
        cases, *_ = report.on_ranks("ddp.sampler_criteria", "sampler", sampler_class, seed())
        values = [[case["lengths"], sorted(sum(case["epochs"][0], []))] for case in cases]
        report.judge("padding", map(sampler_criteria.padding_problem, cases), values)
        report.judge(
            "epochs",
            map(sampler_criteria.epoch_problem, cases),
            [[case["epochs"], case["again"], case["generator left alone"]] for case in cases],
        )


# ------------------------------------------------------------------ 7: find the bug


def bug(cluster: Cluster, training: str) -> None:
    """Check `training(ddp, x, y, epochs)`, a loop around PyTorch's DDP.

    It must end with the weights of a single process.
    """
    with check("bug", cluster) as report:
        answers: list[TrainingAnswer] = report.on_ranks(
            "ddp.step_ranks", "training", training, seed()
        )
        report.judge(
            "averaged",
            map(bug_diagnosis.averaged_problem, itertools.count(), answers),
            [answer["sent"] for answer in answers],
        )
        values = [[_sample(answer["got"]), answer["rows"] or []] for answer in answers]
        report.judge(
            "weights",
            map(bug_diagnosis.weights_problem, itertools.count(), answers),
            values,
            atol=diagnosis.ATOL,
        )


# ------------------------------------------------------------------ 8: find the bugs of a
# fine-tuning


def fine_tuning(cluster: Cluster, function: str) -> None:
    """Check `function(model, batches, epochs)`, which fine-tunes as a single process does.

    There are frozen layers, missing labels and a scheduler.
    """
    with check("fine-tuning", cluster) as report:
        answers: list[TunedAnswer] = report.on_ranks(
            "ddp.fine_tuning_ranks", "fine_tuning", function, seed()
        )
        first = answers[0]
        # what ranks have in common does not depend on the seed by itself
        seeded = _sample(first["serial"][0])
        agreed = all(tuning.same_rates(answer, first) for answer in answers)
        values: list[Any] = [
            [
                tuning.same_rates(answer, first),
                len(set(answer["rates"] or ())) > 1,
                tuning.of_one_rank(answer),
                seeded,
            ]
            for answer in answers
        ]
        report.judge(
            "rates",
            [
                tuning.rates_problem(rank, answer, first, agreed)
                for rank, answer in enumerate(answers)
            ],
            values,
            atol=diagnosis.ATOL,
        )
        values = [[tuning.same_layers(answer, first), seeded] for answer in answers]
        report.judge(
            "layers",
            [tuning.layers_problem(rank, answer, first) for rank, answer in enumerate(answers)],
            values,
            atol=diagnosis.ATOL,
        )
        together = all(all(tuning.same_layers(answer, first)) for answer in answers)
        problems = [
            tuning.labels_problem(rank, answer, together) for rank, answer in enumerate(answers)
        ]
        problems += [tuning.unlabelled_problem(rank, answer) for rank, answer in enumerate(answers)]
        values = [
            [*map(_sample, answer["got"]), _sample(answer["emptied"][0])] for answer in answers
        ]
        report.judge("labels", problems, values, atol=diagnosis.ATOL)


# ------------------------------------------------------------------ 9: a batch file


def job(text: str) -> None:
    """Check a batch file without Slurm, as a job of two nodes and of more.

    bash runs it with stand-ins for srun and torchrun.
    """
    with Report("job", CRITERIA) as report:
        runs = [batch_file.run(text, seed(), nodes) for nodes in (None, 3 + seed() % 3)]
        report.judge(
            "nodes",
            map(batch_file_diagnosis.nodes_problem, runs),
            [batch_file_diagnosis.nodes_seen(run) for run in runs],
        )
        report.judge(
            "meeting",
            map(batch_file_diagnosis.meeting_problem, runs),
            [batch_file_diagnosis.meeting_seen(run) for run in runs],
        )
