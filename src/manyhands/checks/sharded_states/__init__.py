"""Checks of unit 16, sharded states.

Bytes by ZeRO's table are checked in the notebook's kernel, all else on the ranks, next to a single
process.

The ledger counts collectives, with the bytes of the textbook's rings. What is alive is counted by
the memory of the tensors themselves, so the counts are exact on any machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import ask, number
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.sharded_states import cases, diagnosis
from manyhands.checks.sharded_states.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manyhands.checks.sharded_states.answers import Findings
    from manyhands.cluster import Cluster

__all__ = ["HINTS", "clip", "gather", "masters", "memory", "shards", "training", "zero1", "zero2"]

check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)


def memory(function: Callable[..., Any], most_layers: Callable[..., Any]) -> None:
    """Check `function(layers, ranks, stage, weight, gradient, states)`, the bytes on a rank.

    `most_layers` must return how many layers fit.
    """
    from manyhands.simulate import sharding

    with Report("memory", CRITERIA) as report, closed(sharding.shard_size, sharding.states_bytes):
        for name, asked in cases.models(seed()).items():
            with report.part(name):
                answers = [number(ask(function, list(case[0]), *case[1:])) for case in asked]
                report.judge(name, diagnosis.memory_problems(asked, answers), answers)
        devices = cases.devices(seed())
        answers = [number(ask(most_layers, *case)) for case in devices]
        report.judge("most", diagnosis.most_problems(devices, answers), answers)


def shards(cluster: Cluster, shard: str, unshard: str, reduce_shard: str) -> None:
    """Check the three functions on shards.

    They are `shard(tensor, rank, ranks)`, `unshard(own, shape, group)` and `reduce_shard(tensor,
    group)`.
    """
    with check("shards", cluster) as report:
        for function, names in (
            (shard, ["cut"]),
            (unshard, ["whole"]),
            (reduce_shard, ["mean", "traffic"]),
        ):
            with report.part(*names):
                _judge(
                    report,
                    names,
                    report.on_ranks(
                        "sharded_states.shard_ranks", names[0], function, seed(), remark="hangs"
                    ),
                )


def zero1(cluster: Cluster, step: str) -> None:
    """Check `step(parameters, state, lr, eps, group)` against a single process's Adam.

    This is torch.optim.Adam.
    """
    _all_at_once("shard_ranks", "zero1", cluster, step)


def zero2(cluster: Cluster, backward: str) -> None:
    """Check `backward(loss, parameters, group)`, the shards of mean gradients.

    What is alive meanwhile is checked, too.
    """
    _all_at_once("backward_ranks", "zero2", cluster, backward)


def gather(cluster: Cluster, layer: str) -> None:
    """Check the function of autograd `layer.apply(x, own, shape, group)`.

    It is compared with a layer with its whole weight.
    """
    _all_at_once("backward_ranks", "gather", cluster, layer)


def masters(cluster: Cluster, step: str) -> None:
    """Check `step(parameters, state, lr, group)` on bfloat16 parameters.

    It is compared with float32 in a single process.
    """
    # an addition in a different order may round a number up instead of down
    _all_at_once("number_ranks", "masters", cluster, step, atol=diagnosis.ULP)


def clip(cluster: Cluster, function: str) -> None:
    """Check `function(shards, sizes, max_norm, group)`, the norm of all numbers.

    The shards must be clipped by it.
    """
    _all_at_once("number_ranks", "clip", cluster, function)


def training(cluster: Cluster, function: str) -> None:
    """Check `function(make, x, y, seed, steps, max_norm, mesh)`, a loop around `fully_shard`.

    It is compared with a single process.
    """
    _all_at_once("training_ranks", "training", cluster, function, atol=1e-5)


def _all_at_once(
    module: str, name: str, cluster: Cluster, function: str, atol: float = 1e-9
) -> None:
    with check(name, cluster) as report:
        _judge(
            report,
            list(report.asked),
            report.on_ranks("sharded_states." + module, name, function, seed(), remark="hangs"),
            atol,
        )


def _judge(
    report: RankReport, names: Iterable[str], answers: Iterable[Findings], atol: float = 1e-9
) -> None:
    """Judge these criteria by what the ranks have found, [{criterion: [finding]}]."""
    for name in names:
        findings = [finding for answer in answers for finding in answer[name]]
        report.judge(
            name,
            map(diagnosis.problem_of, findings),
            [finding["values"] for finding in findings],
            rtol=1e-6,
            atol=atol,
        )
