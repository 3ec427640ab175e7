"""Which ranks train what: data parallelism over the world, or a different kind of parallelism.

In a different kind, some groups of ranks may be data parallel. Only such groups can be compared
with one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manyhands.clinic import judge
from manyhands.clinic.average_rules import find_average_mistakes, have_same_outer_gradient
from manyhands.clinic.communication_groups import (
    first_inside,
    groups_inside,
    groups_of_sums,
    messages_of,
    parameter_sizes,
    stages,
)
from manyhands.clinic.data_rules import find_data_mistakes
from manyhands.clinic.dtensor_parts import cut_groups
from manyhands.clinic.evidence import Evidence, relative_distance
from manyhands.clinic.part_rules import copies_in_group, different_losses, tied_copies
from manyhands.clinic.rule import Finding
from manyhands.clinic.tolerances import MOST_PARAMETERS

if TYPE_CHECKING:
    from manyhands.clinic.records import RankRecord, StepRecord
    from manyhands.clinic.visit import Visit

# found where ranks hold parts of one row
DATA = {"same rows", "same places", "replicas", "sampler rank"}
AVERAGES = ("allreduce", "reducescatter", "allgather", "send", "recv")  # how weights are averaged


@dataclass
class Layout:
    """What kind of parallelism the script looks like.

    `kinds` are keys of `layout_messages.LAYOUTS`, `groups` the ranks that average their gradients,
    `parts` groups of ranks that hold parts of one model, `names` the parameters that each rank
    trains alone.
    """

    kinds: list[str]
    groups: list[list[int]] = field(default_factory=list)
    parts: Sequence[Sequence[int]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    again: int = 0  # the step as which began all ranks had the same weights again
    steps: int = 0
    checked: bool = False
    # whether the gradient in a group is not known to be the mean over its rows
    changed: bool = False
    findings: list[Finding] = field(
        default_factory=list
    )  # mistakes, as `judge.find_mistakes` gives them

    @property
    def settled(self) -> bool:
        """Whether what was compared decides.

        It does not where only groups were, whose means may have to be averaged, too.
        """
        return self.checked and self.kinds != ["groups"]


def examined(visit: Visit) -> tuple[Evidence | None, list[Finding], Layout | None]:
    """(evidence, mistakes, layout) of a visit whose ranks have all come through a step.

    The layout is None for data parallelism over the world, and the evidence None where ranks hold
    parts whose gradients cannot be put together.
    """
    ranks = range(visit.ranks)
    if any(visit.seen[rank]["flat"] for rank in ranks):
        evidence = Evidence(visit, list(ranks), names=())
        findings = find_data_mistakes(evidence)
        return None, findings, Layout(["flat"], steps=evidence.count, findings=findings)
    alike = all(parameter_sizes(visit, rank) == parameter_sizes(visit, 0) for rank in ranks)
    whole = Evidence(visit) if alike or visit.seen[0]["sharded"] else None
    cut = sorted(
        {
            tuple(group)
            for rank in ranks
            for shard in visit.seen[rank]["sharded"].values()
            for group in cut_groups(shard)
        }
    )
    if cut and whole:
        return _judge_tensor_parallel(visit, whole, [list(group) for group in cut])
    findings = judge.find_mistakes(whole) if whole else [Finding("parts", {})]
    layout = _recognise(visit, findings) if findings else None
    if layout is None:
        return whole, findings if whole else [], None
    return None, layout.findings, layout


# -- tensor parallelism by DTensor -----------------------------------------------------------------


def _judge_tensor_parallel(
    visit: Visit, evidence: Evidence, parts: list[list[int]]
) -> tuple[Evidence, list[Finding], Layout]:
    """Judge tensor parallelism by the run in one process, where the copy could be run."""
    findings = [finding for finding in judge.find_mistakes(evidence) if finding.key != "alone"]
    apart_in = [
        group for group in parts if _placed_whole(visit, group) and _rows_differ(visit, group)
    ]
    if apart_in:
        findings = [
            Finding("tensor rows", {"ranks": apart_in[0]}),
            # these follow from the rows
            *(finding for finding in findings if finding.key not in ("own", "part own", "copies")),
        ]
    elif not findings and (evidence.one_process or {}).get("unfaithful", 0) > evidence.tolerance:
        for group in parts:
            findings = findings or different_losses([visit.seen[rank] for rank in group])
    groups = [list(evidence.batch_ranks)] if len(evidence.batch_ranks) > 1 else []
    compared = any(step.right is not None for step in evidence.steps)
    return (
        evidence,
        findings,
        Layout(
            ["tensor"],
            groups,
            parts,
            steps=evidence.count,
            checked=compared,
            findings=findings,
            changed=bool(judge.find_shared_deviation(evidence)),
        ),
    )


def _placed_whole(visit: Visit, group: Sequence[int]) -> bool:
    """Whether each rank's input was declared to be the same on all ranks of the group."""
    placed = [
        call["placed"] for rank in group for call in visit.seen[rank]["steps"][0]["calls"][:1]
    ]
    return len(placed) == len(group) and all(place == "whole" for place in placed)


def _rows_differ(visit: Visit, group: Sequence[int]) -> bool:
    """Whether the ranks' rows differ in each of the steps."""
    count = min(len(visit.seen[rank]["steps"]) for rank in group)
    return all(
        len({tuple(_rows(visit.seen[rank]["steps"][number])) for rank in group}) > 1
        for number in range(count)
    )


def _rows(step: StepRecord) -> list[str]:
    return [row for call in step["calls"] for row in call["rows"]]


# -- other kinds, by what was sent -----------------------------------------------------------------


def _recognise(visit: Visit, findings: list[Finding]) -> Layout | None:
    """Recognise a different kind of parallelism by what was sent.

    None where the mistakes that were found are no sign of one.
    """
    ranks, keys = range(visit.ranks), {finding.key for finding in findings}
    world = tuple(ranks)
    sums = [groups_of_sums(visit, rank) for rank in ranks]
    inside = [groups_inside(visit, rank) for rank in ranks]
    # activations, and no weights or gradients
    peers = any(
        message["peer"] is not None and message["phase"] != "apart" and not message["of"]
        for rank in ranks
        for message in messages_of(visit, rank)
    )
    mixed = next(
        (
            (group, part)
            for rank in ranks
            for group in sums[rank]
            for part in inside[rank]
            if set(part) <= set(group) and _mostly_other(visit, part)
        ),
        None,
    )
    if mixed:
        findings = [Finding("other parameters", {"ranks": list(mixed[0])})]
        return Layout(
            ["tensor"], parts=[list(mixed[1])], steps=len(visit.seen[0]["steps"]), findings=findings
        )
    over_all = all(world in of_rank for of_rank in sums)
    partly = all(world in groups_of_sums(visit, rank, 0) for rank in ranks)
    exchanged = any(
        "alltoall" in call for of_rank in inside for calls in of_rank.values() for call in calls
    )
    signs = {"start", "own", "part own", "alone", "parts", "other"} & keys
    if partly and exchanged and {"start", "part own"} & keys:
        return _recognise_experts(visit, findings, world)
    if over_all:
        return _recognise_sequence_parallel(visit, findings) if keys <= DATA else None
    layout = Layout([], _find_groups(visit, sums))
    if peers and signs - {"start"}:
        layout.kinds.append("pipeline")
    cut = [
        group
        for of_rank in inside
        for group in of_rank
        if not any(set(group) <= set(dp) for dp in layout.groups)
        and (exchanged or not _rows_differ(visit, group) or _start_differs(visit, group))
    ]
    if cut and (signs or "same rows" in keys):
        layout.kinds.append("experts" if exchanged else "tensor")
        layout.parts = sorted({tuple(group) for group in cut})
    if not layout.kinds and "parts" in keys:
        layout.kinds.append("parts")
    if not layout.kinds and layout.groups and signs:
        layout.kinds.append("groups")
    if not layout.kinds and {"own", "alone"} & keys:
        return _recognise_local_sgd(visit, findings)
    if not layout.kinds:
        return None
    if {"tensor", "pipeline"} & set(layout.kinds):
        grouped = {rank for group in layout.groups for rank in group}
        layout.groups += [
            group for group in _find_replicas(visit, layout) if not grouped & set(group)
        ]
    return _judge_groups(visit, layout)


def _mostly_other(visit: Visit, group: Sequence[int]) -> bool:
    """Whether the ranks of a group hold different parameters of the same layers.

    They have to have the same rows.
    """
    sizes = parameter_sizes(visit, group[0])
    known = _rows(visit.seen[group[0]]["steps"][0]) and not _rows_differ(visit, group)
    if len(group) < 2 or not known or any(parameter_sizes(visit, rank) != sizes for rank in group):
        return False
    return sum(
        sizes[name] for name in Evidence(visit, group).find_different_starts()
    ) > MOST_PARAMETERS * sum(sizes.values())


def _start_differs(visit: Visit, group: Sequence[int]) -> bool:
    """Whether the ranks of a group hold different parameters, or began with different weights."""
    alike = all(parameter_sizes(visit, rank) == parameter_sizes(visit, group[0]) for rank in group)
    return not alike or bool(Evidence(visit, group).find_different_starts())


def _find_replicas(visit: Visit, layout: Layout) -> list[list[int]]:
    """Find the groups of ranks that began with the same weights but send each other nothing.

    They do not even send it through other ranks. They hold copies of a part of the model, and
    should have averaged their gradients.
    """
    tied = [
        {
            rank,
            *(
                message["peer"]
                for message in messages_of(visit, rank)
                if message["peer"] is not None
            ),
            *(other for group in layout.parts for other in group if rank in group),
        }
        for rank in range(visit.ranks)
    ]
    for _ in tied:  # to what they are tied to by others
        tied = [set().union(*(tied[other] for other in of_rank)) for of_rank in tied]
    groups: list[list[int]] = []
    for rank in range(visit.ranks):
        copies = [
            other
            for other in range(visit.ranks)
            if other == rank
            or (
                not tied[rank] & tied[other]
                and parameter_sizes(visit, other) == parameter_sizes(visit, rank)
            )
        ]
        copies = [
            other for other in copies if not Evidence(visit, [rank, other]).find_different_starts()
        ]
        if (
            len(copies) > 1
            and copies not in groups
            and not _weights_change_between_steps(Evidence(visit, copies))
        ):
            groups.append(copies)
    return groups


def _recognise_sequence_parallel(visit: Visit, findings: list[Finding]) -> Layout | None:
    """Recognise ranks that hold parts of the same rows.

    They send each other what attention needs of the others' parts.
    """
    ranks = range(visit.ranks)
    exchange = all(
        any(
            message["phase"] == "forward"
            and (
                message["peer"] is not None
                or "alltoall" in message["call"]
                or len(message["shape"] or ()) > 2
            )
            for message in messages_of(visit, rank)
        )
        for rank in ranks
    )
    if not exchange or "same rows" in {finding.key for finding in findings}:
        return None
    evidence, steps = Evidence(visit), min(len(record["steps"]) for record in visit.seen.values())
    return Layout(
        ["sequence"],
        [list(ranks)],
        steps=steps,
        checked=judge.compared(evidence) > 0,
        changed=bool(judge.find_shared_deviation(evidence))
        or judge.find_unknown_loss(evidence) is not None,
    )


def _find_groups(visit: Visit, sums: list[list[tuple[int, ...]]]) -> list[list[int]]:
    """Find the groups of ranks that average their gradients and hold the same parameters.

    Each rank is in one group at most.
    """
    groups: list[list[int]] = []
    for rank, of_rank in enumerate(sums):
        for group in of_rank:
            alike = all(
                parameter_sizes(visit, other) == parameter_sizes(visit, rank) for other in group
            )
            shared = all(group in sums[other] for other in group)
            if (
                alike
                and shared
                and not any(set(group) & set(other_group) for other_group in groups)
            ):
                groups.append(list(group))
    return sorted(groups)


def _judge_groups(visit: Visit, layout: Layout, names: list[str] | None = None) -> Layout:
    """The layout with the mistakes inside its groups."""
    for group in layout.groups:
        evidence = Evidence(visit, group, names)
        layout.steps, layout.checked = (
            evidence.count,
            layout.checked or judge.compared(evidence) > 0,
        )
        layout.changed = (
            layout.changed
            or bool(judge.find_shared_deviation(evidence))
            or judge.find_unknown_loss(evidence) is not None
        )
        for finding in judge.find_mistakes(evidence):
            if finding.key not in [other.key for other in layout.findings]:
                layout.findings.append(_renumber(finding, group))
    # what is not averaged reaches other groups, too
    if {"own", "part own"} & {finding.key for finding in layout.findings}:
        layout.findings = [finding for finding in layout.findings if finding.key != "other"]
    if "tensor" in layout.kinds:
        wrong_rows = _find_different_rows(visit, layout)
        if wrong_rows:  # the rows of one data-parallel group follow from that
            layout.findings = [
                *wrong_rows,
                *(finding for finding in layout.findings if finding.key not in DATA),
            ]
        else:
            layout.findings += _apply_rules(visit, layout.parts, different_losses, copies_in_group)
    if "pipeline" in layout.kinds:
        layout.findings += _apply_rules(visit, stages(visit), tied_copies)
    if not layout.groups:
        layout.steps = min(len(record["steps"]) for record in visit.seen.values())
    return layout


def _renumber(finding: Finding, group: Sequence[int]) -> Finding:
    """The finding with the ranks' numbers in the world."""
    values = {**finding.values, "n": len(group)}
    if isinstance(values.get("ranks"), list):
        values["ranks"] = [group[rank] for rank in values["ranks"]]
    if "rank" in values and finding.key != "sampler rank":
        values["rank"] = group[values["rank"]]
    return Finding(finding.key, values)


def _find_different_rows(visit: Visit, layout: Layout) -> list[Finding]:
    """Find activations of different rows that are summed.

    The ranks that sum them hold different weights of the same layers.
    """
    for group in layout.parts:
        calls = [
            call for rank in group for step in visit.seen[rank]["steps"] for call in step["calls"]
        ]
        rows = min((len(call["rows"]) for call in calls), default=0)
        if not rows or any(call["follows"] for call in calls):
            continue  # activations of another stage
        firsts = [first_inside(visit, rank, tuple(group)) for rank in group]
        of_rows = all(
            call == "allreduce" and shape and len(shape) > 1 and shape[0] % rows == 0
            for call, shape in firsts
        )
        if of_rows and _start_differs(visit, group) and _rows_differ(visit, group):
            return [Finding("tensor rows", {"ranks": list(group)})]
    return []


def _apply_rules(
    visit: Visit,
    groups: Sequence[Sequence[int]],
    *rules: Callable[[list[RankRecord]], list[Finding]],
) -> list[Finding]:
    """What the first of the rules that finds something says of the first group of ranks."""
    findings = (rule([visit.seen[rank] for rank in group]) for rule in rules for group in groups)
    return next(filter(None, findings), [])


def _recognise_experts(
    visit: Visit, findings: list[Finding], world: tuple[int, ...]
) -> Layout | None:
    """Recognise experts: parameters that each rank trains alone in a model that sends rows to them.

    Where some parameters start differently, these are the experts. If a different one is not
    averaged, that is a mistake.
    """
    names: dict[str, list[str]] = {
        finding.key: finding.values["names"]
        for finding in findings
        if finding.key in ("start", "part own")
    }
    alone = names.get("start") or names.get("part own") or []
    rest = [name for name in parameter_sizes(visit, 0) if name not in alone]
    if not rest:
        return None
    return _judge_groups(visit, Layout(["experts"], [list(world)], names=alone), rest)


# -- local SGD -------------------------------------------------------------------------------------


def _recognise_local_sgd(visit: Visit, findings: list[Finding]) -> Layout | None:
    """Whether the ranks' weights, which their steps take apart, come together again."""
    evidence = Evidence(visit)
    costs = [visit.cost.get(rank) for rank in range(visit.ranks)]
    begins = [
        {int(number): text for number, text in cost.get("begins", {}).items()} if cost else {}
        for cost in costs
    ]
    ends = [
        {int(number): text for number, text in cost.get("ends", {}).items()} if cost else {}
        for cost in costs
    ]
    # of steps that all ranks have taken before
    numbers = sorted(set.intersection(*map(set, begins)))
    apart_at = {number for number in numbers if len({of_rank[number] for of_rank in begins}) > 1}
    ended = {
        number: [of_rank[number] for of_rank in ends]
        for number in set.intersection(*map(set, ends))
    }
    again = next(
        (
            number
            for number in numbers
            if number not in apart_at
            and (len(set(ended.get(number, [0]))) > 1 or any(other < number for other in apart_at))
        ),
        None,
    )
    rest = [
        finding for finding in findings if finding.key not in ("own", "alone", "drift", "other")
    ]
    known = [finding.key for finding in rest]  # of ranks that sent nothing, only that was looked at
    rest += [
        finding
        for finding in [*find_data_mistakes(evidence), *judge.find_start_mistakes(evidence)]
        if finding.key not in known
    ]
    layout = Layout(["local"], steps=evidence.count, findings=rest)
    averages = [visit.averages.get(rank) for rank in range(visit.ranks)]
    if again is not None or have_same_outer_gradient(averages):
        taken = (
            []
            if again is None
            else [
                rank
                for rank, text in enumerate(ended.get(again, []))
                if text == begins[rank][again]
            ]
        )
        if len(taken) == 1:
            layout.findings.append(Finding("one rank's weights", {"rank": taken[0], "step": again}))
        layout.findings += find_average_mistakes(averages)
        layout.again, layout.checked = again + 1 if again else 0, True
        return layout
    total = sum(parameter_sizes(visit, 0).values())
    averaged = any(
        message["call"].startswith(AVERAGES)
        and message["phase"] in ("apart", "step", "after")
        and (message["of"] == "weights" or message["numel"] >= MOST_PARAMETERS * total)
        for rank in range(visit.ranks)
        for message in messages_of(visit, rank)
    )
    return layout if averaged and _weights_change_between_steps(evidence) else None


def _weights_change_between_steps(evidence: Evidence) -> bool:
    """Whether something writes into the weights between a step and the next."""
    return any(
        name in steps[number]["begin"] and relative_distance(steps[number]["begin"][name], part) > 0
        for steps in (record["steps"] for record in evidence.seen)
        for number in range(1, evidence.count)
        for name, part in steps[number - 1]["weights"].items()
    )
