"""Checks of unit 15, tensor parallelism.

Layers of which each rank has a part run on the ranks, whereas layouts are asked for in the
notebook's kernel and tried on the ranks.

Layers, layouts and sizes are drawn from the seed, and the ledger measures what is sent.
"""

from __future__ import annotations

import copy
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from manyhands.checks import Report, seed
from manyhands.checks.by_hand import closed
from manyhands.checks.in_kernel import MESSAGES, call
from manyhands.checks.on_ranks import RankReport
from manyhands.checks.report import Stopped
from manyhands.checks.tensor_parallel import cases, diagnosis
from manyhands.checks.tensor_parallel.messages import CRITERIA, HINTS, MISTAKES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from manyhands.checks.report import Problem
    from manyhands.checks.tensor_parallel.answers import Cut, LayerCase, VocabularyCase
    from manyhands.checks.tensor_parallel.cases import Layout, Mesh, Product, Sizes
    from manyhands.cluster import Cluster

__all__ = [
    "HINTS",
    "attention",
    "choose",
    "column",
    "f_and_g",
    "mlp",
    "price",
    "reductions",
    "row",
    "vocabulary",
]

RTOL = 1e-9
OURS = (
    cases.rule,
    cases.reduced,
    cases.possible,
    cases.runs_well,
    cases.seen_by,
    cases.sent_bytes,
    cases.held_bytes,
    cases.numbers,
    diagnosis.cheapest,
)  # the check's own answers
# parts of an exception's text that mean that nothing was found
OF_NONE = ("NoneType", "empty", "index out of range", "not associated with a value")
check = partial(RankReport, criteria=CRITERIA, mistakes=MISTAKES)


def f_and_g(cluster: Cluster, copy_name: str, sum_name: str) -> None:
    """Check `copy_to(x, group)` and `reduce_from(x, group)` forward and backward.

    What each of them sends is checked, too.
    """
    _layer("f-and-g", cluster, "f_and_g", copy_name, sum_name)


def column(cluster: Cluster, name: str) -> None:
    """Check `name(x, w, b, group)`, a layer of which each rank has some columns."""
    _layer("column", cluster, "column", name)


def row(cluster: Cluster, name: str) -> None:
    """Check `name(x, w, b, group)`, a layer of which each rank has some rows."""
    _layer("row", cluster, "row", name)


def mlp(cluster: Cluster, name: str) -> None:
    """Check `name(x, up, up_bias, down, down_bias, group)`.

    It has two layers and one sum in each direction.
    """
    _layer("mlp", cluster, "mlp", name)


def attention(cluster: Cluster, cut_name: str, name: str) -> None:
    """Check `cut_name(qkv, out, heads, rank, size)` and `name(x, qkv, out, heads, group)`."""
    with check("attention", cluster) as report:
        with report.part("pieces", "refused"):
            answer: Cut = _on_ranks(report, "cut", cut_name)[0]
            pieces, refused = answer["pieces"], answer["refused"]
            problems = [
                diagnosis.pieces_problem(case) or diagnosis.memory_problem(case) for case in pieces
            ]
            values = [
                [[result["sample"] for result in case["results"]], case["held"], case["touched"]]
                for case in pieces
            ]
            report.judge("pieces", problems, values, rtol=RTOL, atol=RTOL)
            values = [[case["heads"], case["error"] == "ValueError"] for case in refused]
            report.judge("refused", map(diagnosis.refused_problem, refused), values)
        _judge_layer(report, _on_ranks(report, "attention", name))


def vocabulary(cluster: Cluster, name: str) -> None:
    """Check `name(h, head, targets, group)`, the cross-entropy of each position.

    Each rank has some columns of the head.
    """
    with check("vocabulary", cluster) as report:
        answers: list[list[VocabularyCase]] = report.on_ranks(
            "tensor_parallel.vocabulary_ranks", "vocabulary", name, seed(), remark="hangs"
        )
        runs = diagnosis.mark_small_groups([case for answer in answers for case in answer])
        for criterion, problem_of in (
            ("values", diagnosis.value_problem),
            ("gradients", diagnosis.gradients_problem),
        ):
            report.judge(
                criterion,
                map(problem_of, runs),
                [diagnosis.evidence(case)[criterion] for case in runs],
                rtol=RTOL,
                atol=RTOL,
            )
        report.judge(
            "sent",
            map(diagnosis.sent_problem, runs),
            [diagnosis.sent_evidence(case) for case in runs],
        )


def _layer(check_name: str, cluster: Cluster, experiment: str, *names: str) -> None:
    with check(check_name, cluster) as report:
        _judge_layer(report, _on_ranks(report, experiment, *names))


def _on_ranks(report: RankReport, experiment: str, *args: Any) -> list[Any]:
    return report.on_ranks("tensor_parallel.ranks", experiment, *args, seed(), remark="hangs")


def _judge_layer(report: RankReport, answers: Iterable[Iterable[LayerCase]]) -> None:
    runs = diagnosis.mark_small_groups([case for answer in answers for case in answer])
    problems_of = {
        "values": diagnosis.value_problem,
        "gradients": diagnosis.gradients_problem,
        "calls": diagnosis.calls_problem,
    }
    for name, problem_of in problems_of.items():
        values = [diagnosis.evidence(case)[name] for case in runs]
        report.judge(name, map(problem_of, runs), values, rtol=RTOL, atol=RTOL)


# --- layouts, asked for in the notebook's kernel and tried on the ranks ---------------------------


def reductions(cluster: Cluster, function: Callable[..., Any]) -> None:
    """Check `function(a, b, out, layout)` -> (axes forward, for a, for b).

    Products are run with the sums that it gives.
    """
    with check("reductions", cluster) as report:
        mesh, asked = cases.products(seed())
        tables = [_table(function, mesh, *case) for case in asked]
        by_rank = report.on_ranks(
            "tensor_parallel.mesh_ranks", "products", seed(), mesh, asked, tables
        )
        runs = list(zip(asked, tables, zip(*by_rank, strict=True), strict=True))
        for name, places in (("forward", (0,)), ("backward", (1, 2))):
            values = [
                [rank[place][1] for rank in ranks for place in places] for _, _, ranks in runs
            ]
            report.judge(name, diagnosis.table_problems(runs, places), values, rtol=RTOL, atol=RTOL)
        refusals = cases.refusals(seed())
        with closed(*OURS):
            replies = [(case, diagnosis.refusal(function, *case[:2])) for case in refusals]
        problems = (diagnosis.refusal_problem(case, error) for case, error in replies)
        report.judge("refused", problems, [[str(case[1]), str(error)] for case, error in replies])


def _table(
    function: Callable[..., Any], mesh: Mesh, product: Product, layout: Layout, sizes: Sizes
) -> list[list[str]]:
    """The axes that the learner's function gives for a possible layout.

    `Stopped` if it gives none.
    """
    with closed(*OURS):
        answer, error = call(function, *product, dict(layout))
    if error and "raised ValueError" in error:
        refused = diagnosis.refusal_problem((product, layout, True), "ValueError")
        assert refused is not None  # since the layout is possible
        raise Stopped(refused["mistake"], got=error)
    if error:
        raise Stopped(error)
    table = diagnosis.table_of(answer, mesh)
    if table is None:
        raise Stopped(MISTAKES["no table"], got=str(answer))
    return table


def _ask(function: Callable[..., Any], *args: Any) -> Any:
    """What the learner's function returns for these arguments, which it may change.

    `Stopped` if it raises. If it calls a stub, the message names the stub.
    """
    try:
        with closed(*OURS):
            return function(*copy.deepcopy(args))
    except NotImplementedError as error:
        name = traceback.extract_tb(error.__traceback__)[-1].name
        raise Stopped(MESSAGES["unwritten"].format(name=name)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a learner's function may raise anything
        text = MESSAGES["raised"].format(
            name=function.__name__, error=f"{type(error).__name__}: {error}"[:300]
        )
        none = function.__name__ == "choose" and any(words in text for words in OF_NONE)
        raise Stopped("\n".join([text, MISTAKES["none fits"]] if none else [text])) from None


def price(cluster: Cluster, function: Callable[..., Any]) -> None:
    """Check `function(program, sizes, layout, mesh)` -> [(axis, numbers)].

    It is compared with what the ledger sees.
    """
    with check("price", cluster) as report:
        asked = cases.programs(seed())
        answers = [diagnosis.pairs(_ask(function, *case)) for case in asked]
        seen = report.on_ranks("tensor_parallel.mesh_ranks", "seen", asked)[0]
        problems: dict[str, Iterable[Problem | None]] = {
            "axes": diagnosis.axes_problems(asked, answers, seen),
            "numbers": map(diagnosis.numbers_problem, asked, answers, seen),
        }
        for name, judgements in problems.items():
            report.judge(
                name, judgements, [diagnosis.price_evidence(name, answer) for answer in answers]
            )


def choose(function: Callable[..., Any]) -> None:
    """Check `function(program, sizes, mesh, memory_bytes)` -> layout.

    The layout must fit, and no layout that fits may send less.
    """
    with Report("choose", CRITERIA) as report:
        jobs = cases.jobs(seed())
        answers = [diagnosis.layout_of(_ask(function, *job), job) for job in jobs]
        judgements = diagnosis.all_layout_problems(jobs, answers)
        values = [
            diagnosis.layout_evidence(job, layout)
            for job, layout in zip(jobs, answers, strict=True)
        ]
        for name in report.asked:
            report.judge(
                name,
                (problems[name] for problems in judgements),
                [value[name] for value in values],
                rtol=RTOL,
            )
