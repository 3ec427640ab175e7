"""From a visit to its conclusion: diagnoses, mistakes, remarks, costs and units, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manyhands.clinic import clinic_messages, costs, judge, layouts, remark_rules
from manyhands.clinic.clinic_limits import LAST_LINES, SHOWN_NAMES, STEPS, TIMEOUT_S
from manyhands.clinic.exit_codes import FOUND, NOT_DETERMINED, NOTHING_FOUND, SCRIPT_FAILED
from manyhands.clinic.layout_messages import describe_layout
from manyhands.clinic.message_values import format_values
from manyhands.clinic.recommended_units import units_of
from manyhands.clinic.replayed_steps import compare_replayed_weights, is_torch_optimizer
from manyhands.clinic.rule import NOT_JUDGED, Finding, not_judged
from manyhands.clinic.tracebacks import crashed_ranks, describe_failure
from manyhands.cluster.faults.fault_messages import ranks_text
from manyhands.cluster.launch.script_copy import some
from manyhands.gpu_stand_in.substitution_messages import describe_substitutions

if TYPE_CHECKING:
    from manyhands.clinic.costs import Costs
    from manyhands.clinic.evidence import Evidence
    from manyhands.clinic.visit import Visit
    from manyhands.rehearsal.rules import Finding as RuleFinding

WRONG_SIZE = "Received data size doesn't match expected size"  # gloo, when it ends the process
# remarks on the gradient itself
CHANGED = {"scaled by parameter", "same but other", "own length", "length varies", "gathers rows"}


@dataclass
class Statement:
    """One mistake or remark, as sentences for a page."""

    key: str
    text: str
    title: str = ""
    remedy: str = ""
    units: tuple[str, ...] = ()


@dataclass
class Conclusion:
    """All that the page shows."""

    visit: Visit
    right: str
    hangs: str
    gpus: str
    mistakes: list[Statement] = field(default_factory=list)
    remarks: list[Statement] = field(default_factory=list)
    measured: list[tuple[str, str]] = field(default_factory=list)  # (what, value)
    costs: Costs | None = None
    cost_remarks: list[Statement] = field(default_factory=list)
    traceback: str = ""
    units: list[tuple[str, str, str]] = field(default_factory=list)  # (number, title, why)
    code: int = NOTHING_FOUND
    gpu_findings: list[Statement] = field(default_factory=list)
    gpu_remarks: list[Statement] = field(default_factory=list)
    gpu_note: str = ""  # how it was looked for
    # [(whose, last lines)], where the diagnosis is "not determined"
    printed: list[tuple[str, str]] = field(default_factory=list)


class Questions:
    """Asks one question after the other.

    One that raises an exception is left out, and `left_out` says so. The answers to the others
    still reach the page.
    """

    def __init__(self) -> None:
        self.left_out: list[Finding] = []

    def __call__(self, default: Any, question: Callable[..., Any], *args: Any) -> Any:
        """Return `question(*args)`; where it raises an exception, note it and return `default`."""
        try:
            return question(*args)
        except Exception as error:  # noqa: BLE001 - a question that fails is left out, and the report says so
            self.left_out.append(not_judged(question.__name__, error))
            return default


def conclude(visit: Visit, to_end: bool = False, timeout_s: float = TIMEOUT_S) -> Conclusion:
    """What is to be said of a `Visit`."""
    ask = Questions()
    evidence, findings, layout = (
        ask((None, [], None), layouts.examined, visit)
        if _all_have_stepped(visit)
        else (None, [], None)
    )
    compared = ask(0, judge.compared, evidence) if evidence else 0
    ask.left_out += [finding for finding in findings if finding.key == NOT_JUDGED]
    ask.left_out += [
        Finding("not noted", {"rank": rank, "error": seen["missed"]})
        for rank, seen in sorted(visit.seen.items())
        if seen.get("missed")
    ][:1]
    findings = [finding for finding in findings if finding.key != NOT_JUDGED]
    doubts = bool(ask.left_out)
    remarks = _collect_remarks(visit, evidence, ask)
    fault = visit.fault
    # by gloo: another call's message came
    aborted = any(WRONG_SIZE in text for text in visit.output.values())
    hangs = (
        fault is not None and fault.kind in ("hang", "mismatch") and not (visit.errors or aborted)
    )
    failed = bool(
        visit.errors
        or visit.launcher_message
        or (not hangs and not visit.timed_out and crashed_ranks(visit))
    )
    # a rank that has left a call out has a gradient that nothing else explains
    if fault is not None and hangs:
        findings = [finding for finding in findings if finding.key != "other"]
        findings.append(
            Finding(
                "hang",
                {
                    "text": fault.text.splitlines()[0].removeprefix("HANG: "),
                    "remedy": "uneven" if fault.less_often else None,
                },
            )
        )
    elif fault is not None and (fault.kind == "mismatch" or aborted):
        cause = fault.text.splitlines()[-1] if fault.kind == "mismatch" else clinic_messages.CROSSED
        findings.append(Finding("crossed", {"text": cause}))
    cost = ask(None, costs.add_up, visit.cost) if len(visit.cost) == visit.ranks else None
    horovod = 0 in visit.seen and "horovod" in visit.seen[0]["frameworks"]
    of_costs = ask([], costs.remarks, cost, horovod) if cost else []
    measured = ask([], _measured, evidence, findings)
    wrong = [finding for finding in findings if finding.key != "hang"]
    if wrong and (evidence or layout):
        right = _describe_wrong(wrong)
    elif layout and not doubts:
        right = describe_layout(layout, evidence)
    elif doubts or not compared or visit.ranks == 1:
        right = _describe_unknown(visit, evidence, failed, hangs, doubts)
    else:
        right = _describe_right(evidence, compared, remarks)
    done = Conclusion(
        visit,
        right,
        "",
        "",
        [_state_mistake(finding, visit) for finding in findings],
        [_state_remark(finding) for finding in [*remarks, *ask.left_out]],
        measured,
        cost,
        [_state_remark(finding) for finding in of_costs],
    )
    done.gpus, statements, done.gpu_note = _describe_gpus(visit, cost)
    done.gpu_findings = [statement for statement in statements if statement.key != "remark"]
    done.gpu_remarks = [statement for statement in statements if statement.key == "remark"]
    done.hangs = _describe_hangs(visit, failed, hangs, to_end, timeout_s)
    done.units = units_of([*done.mistakes, *done.remarks, *done.cost_remarks])
    if failed:
        done.code, done.traceback = (
            SCRIPT_FAILED,
            "\n".join([describe_failure(visit), *visit.reasons]),
        )
    elif findings or done.gpu_findings:
        done.code = FOUND
    elif (
        visit.timed_out
        or right.startswith(clinic_messages.UNKNOWN)
        or (layout and not layout.settled)
        or not _rehearsal_is_whole(visit)
    ):
        done.code = NOT_DETERMINED
    if evidence is None and layout is None and not failed:
        done.printed = _last_lines(visit)
    return done


def _all_have_stepped(visit: Visit) -> bool:
    """Whether all ranks have come through one step."""
    return len(visit.seen) == visit.ranks and all(record["steps"] for record in visit.seen.values())


def _rehearsal_is_whole(visit: Visit) -> bool:
    """Whether a second run that was to be judged, was judged as far as it was to go."""
    from manyhands.rehearsal.rehearsal_limits import CLEAN, FOUND

    made = visit.rehearsal
    return not visit.not_rehearsed and (
        made is None or made.code == CLEAN or (made.code == FOUND and bool(made.findings))
    )


def _collect_remarks(visit: Visit, evidence: Evidence | None, ask: Questions) -> list[Finding]:
    remarks = []
    if evidence and visit.ranks > 1:
        remarks += ask([], remark_rules.remarks, evidence)
        if visit.fault or visit.timed_out:
            remarks = [
                Finding("not tried: stopped", {})
                if finding.key == "not tried: no copy"
                else finding
                for finding in remarks
            ]
        if not evidence.sharded and not all(
            is_torch_optimizer(step) for step in evidence.first["steps"]
        ):
            remarks.append(Finding("other optimiser", {}))
    if evidence and evidence.first["wrapper"] == "DataParallel":
        remarks.append(Finding("DataParallel", {}))
    elif visit.ranks == 1:
        remarks.append(Finding("one rank", {}))
    counts = _count_steps(visit)
    if len(set(counts)) > 1:
        remarks.append(Finding("unequal steps", {"counts": ", ".join(map(str, counts))}))
    if visit.substituted:
        remarks.append(Finding("stand-in", {"words": describe_substitutions(visit.substituted)}))
    if visit.linked:
        remarks.append(Finding("linked", {"files": some(visit.linked)}))
    if visit.left_out:
        remarks.append(Finding("left out", {"files": describe_left_out(visit)}))
    return remarks


def _count_steps(visit: Visit) -> list[int]:
    """How many steps each rank took."""
    return [visit.cost[rank]["steps"] for rank in sorted(visit.cost)]


def describe_left_out(visit: Visit) -> str:
    """The first names of what is missing in the copy."""
    return some(visit.left_out, SHOWN_NAMES)


def _describe_wrong(findings: list[Finding]) -> str:
    what = "likely mistake was" if len(findings) == 1 else "likely mistakes were"
    return clinic_messages.DIAGNOSES["wrong"].format(count=len(findings), what=what)


def _describe_right(evidence: Evidence, compared: int, remarks: list[Finding]) -> str:
    """The answer to the first question where gradients were compared and no mistake was found."""
    calls = [finding.values["calls"] for finding in remarks if finding.key == "undivided parts"]
    mild = {"stand-in", "linked", "left out", "sampled", "unequal steps"}
    key = (
        "changed"
        if any(finding.key in CHANGED for finding in remarks)
        else (
            "undivided parts"
            if calls
            else (
                "sharded"
                if evidence.sharded
                else "same"
                if all(finding.key in mild for finding in remarks)
                else "same but"
            )
        )
    )
    rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.batch_ranks) or "same"
    return clinic_messages.DIAGNOSES[key].format(
        steps=compared, rows=rows, calls=max(calls, default=1)
    )


def _describe_unknown(
    visit: Visit, evidence: Evidence | None, failed: bool, hangs: bool, doubts: bool
) -> str:
    """Why the first question has no answer."""
    counts = _count_steps(visit)
    if doubts:
        key = "not judged"
    elif evidence:
        key = (
            "one" if visit.ranks == 1 else "sharded untold" if evidence.sharded else "not compared"
        )
    else:
        key = (
            "failed"
            if failed
            else (
                "hung"
                if hangs
                else (
                    "stopped"
                    if visit.timed_out
                    else "some without a step"
                    if any(counts)
                    else "no step"
                )
            )
        )
    return clinic_messages.DIAGNOSES[key].format(counts=", ".join(map(str, counts)))


def _last_lines(visit: Visit) -> list[tuple[str, str]]:
    """Return [(whose, text)], the last lines that each rank printed.

    Ranks that printed the same are one entry.
    """
    texts: dict[str, list[int]] = {}
    for rank in range(visit.ranks):
        lines = visit.output.get(rank, "").rstrip().splitlines()[-LAST_LINES:]
        texts.setdefault("\n".join(lines), []).append(rank)
    return [
        (
            _capitalise(
                (clinic_messages.PRINTED if text else clinic_messages.PRINTED_NOTHING).format(
                    ranks=ranks_text(ranks)
                )
            ),
            text,
        )
        for text, ranks in texts.items()
    ]


def _describe_hangs(visit: Visit, failed: bool, hangs: bool, to_end: bool, timeout_s: float) -> str:
    if hangs and visit.fault is not None:
        remedy = (
            f"\nWhat to do: {clinic_messages.REMEDIES['uneven']}" if visit.fault.less_often else ""
        )
        return "Yes: " + visit.fault.text.removeprefix("HANG: ") + remedy
    if failed:
        return clinic_messages.HANGS["failed"]
    if visit.timed_out:
        return clinic_messages.HANGS["limit"].format(limit_s=timeout_s) + (
            f"\n{visit.fault.text}" if visit.fault else ""
        )
    steps = min(_count_steps(visit), default=0)
    return clinic_messages.HANGS["no" if steps else "no step"].format(
        steps=steps, whole=clinic_messages.HANGS["end"] if to_end else ""
    )


def _describe_gpus(visit: Visit, cost: Costs | None) -> tuple[str, list[Statement], str]:
    """What the rehearsal has found: (the diagnosis, [`Statement`, ...], how it was looked for)."""
    rehearsal = visit.rehearsal
    if visit.not_rehearsed:
        return clinic_messages.GPUS["not judged"].format(error=visit.not_rehearsed), [], ""
    if rehearsal is None:
        return (
            clinic_messages.GPUS[
                (
                    "gpu"
                    if cost and cost.gpu
                    else (
                        "launcher"
                        if visit.launcher != "torchrun"
                        else "one rank"
                        if visit.ranks == 1
                        else "not tried"
                    )
                )
            ],
            [],
            "",
        )
    if rehearsal.errors:
        error = rehearsal.errors[min(rehearsal.errors)].strip().splitlines()[-1]
        return clinic_messages.GPUS["failed"].format(error=error), [], ""
    from manyhands.rehearsal import rehearsal_report

    statements = [_state_rehearsal_finding(finding) for finding in rehearsal.findings]
    open_ends = [
        clinic_messages.GPUS[key] for key in ("waits", "ended", "cut") if getattr(rehearsal, key)
    ]
    if not rehearsal.calls and not statements:
        return " ".join(open_ends) or clinic_messages.GPUS["no call"], [], ""
    count = sum(statement.key != "remark" for statement in statements)
    text = clinic_messages.GPUS["some" if count else "none"].format(
        count=count,
        seen=rehearsal_report.describe_coverage(rehearsal.traces),
        what="thing was" if count == 1 else "things were",
    )
    far = clinic_messages.GPUS["steps" if rehearsal.whole else "end"].format(steps=STEPS)
    return (
        " ".join([*open_ends, text]),
        statements,
        clinic_messages.GPUS["rest"].format(far=far, cannot=rehearsal_report.CANNOT_SEE),
    )


def _state_rehearsal_finding(finding: RuleFinding) -> Statement:
    place = f"{finding.file}:{finding.line}" if finding.file else "outside your code"
    title = f"{clinic_messages.SEVERITIES[finding.severity]}: {place}, {ranks_text(finding.ranks)}"
    return Statement(
        "remark" if finding.is_remark else "gpu",
        f"{finding.call} {finding.text}.",
        title,
        _capitalise(finding.remedy) + ".",
    )


def _measured(evidence: Evidence | None, wrong: Sequence[Finding] = ()) -> list[tuple[str, str]]:
    """The numbers behind the diagnosis.

    Those that the remarks on a right script explain are left out.
    """
    if evidence is None or evidence.ranks == 1:
        return []
    if not evidence.count:
        return [("steps compared", "0")]
    numbers = [
        ("steps compared", str(evidence.count)),
        ("rows in a step, by rank", " ".join(str(len(rows)) for rows in evidence.steps[0].rows)),
        ("type of the weights", evidence.dtype.removeprefix("torch.")),
    ]
    if not evidence.sharded:
        far = max(max(evidence.weight_distances(number)) for number in range(evidence.count))
        numbers.append(
            ("distance between the ranks' weights, relative to their length", f"{far:.1e}")
        )
        way = compare_replayed_weights(evidence)
        # rounding decides where Adam goes with a gradient of nothing
        if way and not evidence.first["scaled"] and (wrong or max(way) < evidence.tolerance):
            numbers.append(
                (
                    (
                        f"change of the weights in {evidence.count} steps, compared with the "
                        "gradients of a single process"
                    ),
                    f"{max(way):.1e} apart",
                )
            )
    tried = remark_rules.distance_from_single_process(evidence)
    if tried is not None and not remark_rules.measures_disagree(evidence):
        numbers.append(
            (
                (
                    "first gradient, compared with a copy of the model that got the rows of all "
                    "ranks at once"
                ),
                f"{tried:.1e} apart",
            )
        )
    rates = [
        options["lr"] for options, _ in evidence.of(0, "groups")[0] if options.get("lr") is not None
    ]
    if rates:
        numbers.append(
            ("learning rate in the first step", " ".join(f"{float(rate):.4g}" for rate in rates))
        )
    return numbers


# -- messages --------------------------------------------------------------------------------------


def _state_mistake(finding: Finding, visit: Visit) -> Statement:
    title, text, remedy, units = clinic_messages.MISTAKES[finding.key]
    other: str = finding.values.get("remedy") or ""
    if other == "uneven":  # the batches, and not the collective, are what to learn about
        units = ("06", "14")
    return Statement(
        finding.key,
        _capitalise(text.format(**format_values(finding.values, visit))),
        title,
        clinic_messages.REMEDIES.get(other, remedy),
        units,
    )


def _state_remark(finding: Finding) -> Statement:
    return Statement(
        finding.key,
        _capitalise(clinic_messages.REMARKS[finding.key].format(**format_values(finding.values))),
        units=clinic_messages.REMARK_UNITS.get(finding.key, ()),
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
