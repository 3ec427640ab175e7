"""From a visit to what is said of it: verdicts, mistakes, remarks, costs and units, as text for any
page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from manyhands import gpu_stand_in
from manyhands.clinic import clinic_words as words
from manyhands.clinic import costs, judge, layouts, remark_rules
from manyhands.clinic.layout_words import looks_like
from manyhands.clinic.rule import NOT_JUDGED, Finding, not_judged
from manyhands.clinic.shown_values import NAMED, shown
from manyhands.clinic.steps_anew import moved_apart, of_torch
from manyhands.clinic.tracebacks import dead, of_visit
from manyhands.clinic.units_named import units_of
from manyhands.clinic.visit import STEPS
from manyhands.cluster.faults.fault_messages import ranks_text
from manyhands.cluster.launch.script_copy import some

if TYPE_CHECKING:
    from manyhands.clinic.costs import Costs
    from manyhands.clinic.evidence import Evidence
    from manyhands.clinic.visit import Visit
    from manyhands.rehearsal.rules import Finding as RuleFinding

NOTHING, FOUND, FAILS, NOT_DETERMINED = 0, 1, 2, 3  # exit codes
OTHER_SIZE = "Received data size doesn't match expected size"  # gloo, when it ends the process
LAST_LINES = 8  # of what a rank printed
# remarks on the gradient itself
CHANGED = {"scaled by parameter", "same but other", "own length", "length varies", "gathers rows"}


@dataclass
class Said:
    """One mistake or remark, in words."""

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
    mistakes: list[Said] = field(default_factory=list)
    remarks: list[Said] = field(default_factory=list)
    measured: list[tuple[str, str]] = field(default_factory=list)  # (what, value)
    costs: Costs | None = None
    cost_remarks: list[Said] = field(default_factory=list)
    traceback: str = ""
    units: list[tuple[str, str, str]] = field(default_factory=list)  # (number, title, why)
    code: int = NOTHING
    gpu_findings: list[Said] = field(default_factory=list)
    gpu_remarks: list[Said] = field(default_factory=list)
    gpu_note: str = ""  # how it was looked for
    # [(whose, last lines)], where the verdict is "not determined"
    printed: list[tuple[str, str]] = field(default_factory=list)


class Questions:
    """Asks one question after the other.

    One that raises an exception is left out, and `left_out` says so. The answers to the others
    still reach the page.
    """

    def __init__(self) -> None:
        self.left_out: list[Finding] = []

    def __call__(self, default: Any, question: Callable[..., Any], *args: Any) -> Any:
        try:
            return question(*args)
        except Exception as error:  # noqa: BLE001 - a question that fails is left out, and the report says so
            self.left_out.append(not_judged(question.__name__, error))
            return default


def conclude(visit: Visit, to_end: bool = False, timeout_s: float = 300) -> Conclusion:
    """What is to be said of a `Visit`."""
    ask = Questions()
    evidence, found, layout = (
        ask((None, [], None), layouts.examined, visit) if _stepped(visit) else (None, [], None)
    )
    compared = ask(0, judge.compared, evidence) if evidence else 0
    ask.left_out += [one for one in found if one.key == NOT_JUDGED]
    ask.left_out += [
        Finding("not noted", {"rank": rank, "error": seen["missed"]})
        for rank, seen in sorted(visit.seen.items())
        if seen.get("missed")
    ][:1]
    found = [one for one in found if one.key != NOT_JUDGED]
    doubts = bool(ask.left_out)
    remarks = _remarks(visit, evidence, ask)
    fault = visit.fault
    # by gloo: another call's message came
    aborted = any(OTHER_SIZE in text for text in visit.output.values())
    hangs = (
        fault is not None and fault.kind in ("hang", "mismatch") and not (visit.errors or aborted)
    )
    failed = bool(visit.errors or visit.told or (not hangs and not visit.timed_out and dead(visit)))
    # a rank that has left a call out has a gradient that nothing else explains
    if fault is not None and hangs:
        found = [one for one in found if one.key != "other"]
        found.append(
            Finding(
                "hang",
                {
                    "text": fault.text.splitlines()[0].removeprefix("HANG: "),
                    "remedy": "uneven" if fault.less_often else None,
                },
            )
        )
    elif fault is not None and (fault.kind == "mismatch" or aborted):
        cause = fault.text.splitlines()[-1] if fault.kind == "mismatch" else words.CROSSED
        found.append(Finding("crossed", {"text": cause}))
    cost = ask(None, costs.add_up, visit.cost) if len(visit.cost) == visit.ranks else None
    horovod = 0 in visit.seen and "horovod" in visit.seen[0]["frameworks"]
    of_costs = ask([], costs.remarks, cost, horovod) if cost else []
    measured = ask([], _measured, evidence, found)
    wrong = [one for one in found if one.key != "hang"]
    if wrong and (evidence or layout):
        right = _wrong(wrong)
    elif layout and not doubts:
        right = looks_like(layout, evidence)
    elif doubts or not compared or visit.ranks == 1:
        right = _unknown(visit, evidence, failed, hangs, doubts)
    else:
        right = _right(evidence, compared, remarks)
    done = Conclusion(
        visit,
        right,
        "",
        "",
        [_mistake(one, visit) for one in found],
        [_remark(one) for one in [*remarks, *ask.left_out]],
        measured,
        cost,
        [_remark(one) for one in of_costs],
    )
    done.gpus, said, done.gpu_note = _gpus(visit, cost)
    done.gpu_findings = [one for one in said if one.key != "remark"]
    done.gpu_remarks = [one for one in said if one.key == "remark"]
    done.hangs = _hangs(visit, failed, hangs, to_end, timeout_s)
    done.units = units_of([*done.mistakes, *done.remarks, *done.cost_remarks])
    if failed:
        done.code, done.traceback = FAILS, "\n".join([of_visit(visit), *visit.reasons])
    elif found or done.gpu_findings:
        done.code = FOUND
    elif (
        visit.timed_out
        or right.startswith(words.UNKNOWN)
        or (layout and not layout.settled)
        or not _rehearsal_is_whole(visit)
    ):
        done.code = NOT_DETERMINED
    if evidence is None and layout is None and not failed:
        done.printed = _printed(visit)
    return done


def _stepped(visit: Visit) -> bool:
    """Whether all ranks have come through one step."""
    return len(visit.seen) == visit.ranks and all(one["steps"] for one in visit.seen.values())


def _rehearsal_is_whole(visit: Visit) -> bool:
    """Whether a second run that was to be judged, was judged as far as it was to go."""
    from manyhands.rehearsal.rehearse_command import CLEAN, FOUND

    made = visit.rehearsal
    return not visit.not_rehearsed and (
        made is None or made.code == CLEAN or (made.code == FOUND and bool(made.findings))
    )


def _remarks(visit: Visit, evidence: Evidence | None, ask: Questions) -> list[Finding]:
    found = []
    if evidence and visit.ranks > 1:
        found += ask([], remark_rules.remarks, evidence)
        if visit.fault or visit.timed_out:
            found = [
                Finding("not tried: stopped", {}) if one.key == "not tried: no copy" else one
                for one in found
            ]
        if not evidence.sharded and not all(of_torch(step) for step in evidence.first["steps"]):
            found.append(Finding("other optimiser", {}))
    if evidence and evidence.first["wrapper"] == "DataParallel":
        found.append(Finding("DataParallel", {}))
    elif visit.ranks == 1:
        found.append(Finding("one rank", {}))
    counts = _counts(visit)
    if len(set(counts)) > 1:
        found.append(Finding("unequal steps", {"counts": ", ".join(map(str, counts))}))
    if visit.substituted:
        found.append(Finding("stand-in", {"words": gpu_stand_in.in_words(visit.substituted)}))
    if visit.linked:
        found.append(Finding("linked", {"files": some(visit.linked)}))
    if visit.left_out:
        found.append(Finding("left out", {"files": left_out_in_words(visit)}))
    return found


def _counts(visit: Visit) -> list[int]:
    """How many steps each rank took."""
    return [visit.cost[rank]["steps"] for rank in sorted(visit.cost)]


def left_out_in_words(visit: Visit) -> str:
    """The first names of what is missing in the copy."""
    return some(visit.left_out, NAMED)


def _wrong(found: list[Finding]) -> str:
    what = "likely mistake was" if len(found) == 1 else "likely mistakes were"
    return words.VERDICTS["wrong"].format(count=len(found), what=what)


def _right(evidence: Evidence, compared: int, remarks: list[Finding]) -> str:
    """The answer to the first question where gradients were compared and no mistake was found."""
    calls = [one.values["calls"] for one in remarks if one.key == "undivided parts"]
    mild = {"stand-in", "linked", "left out", "sampled", "unequal steps"}
    key = (
        "changed"
        if any(one.key in CHANGED for one in remarks)
        else (
            "undivided parts"
            if calls
            else (
                "sharded"
                if evidence.sharded
                else "same"
                if all(one.key in mild for one in remarks)
                else "same but"
            )
        )
    )
    rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.givers) or "same"
    return words.VERDICTS[key].format(steps=compared, rows=rows, calls=max(calls, default=1))


def _unknown(
    visit: Visit, evidence: Evidence | None, failed: bool, hangs: bool, doubts: bool
) -> str:
    """Why the first question has no answer."""
    counts = _counts(visit)
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
    return words.VERDICTS[key].format(counts=", ".join(map(str, counts)))


def _printed(visit: Visit) -> list[tuple[str, str]]:
    """[(whose, text)]: the last lines that each rank printed; ranks that printed the same are
    one.
    """
    texts: dict[str, list[int]] = {}
    for rank in range(visit.ranks):
        lines = visit.output.get(rank, "").rstrip().splitlines()[-LAST_LINES:]
        texts.setdefault("\n".join(lines), []).append(rank)
    return [
        (
            _capital(
                (words.PRINTED if text else words.PRINTED_NOTHING).format(ranks=ranks_text(ranks))
            ),
            text,
        )
        for text, ranks in texts.items()
    ]


def _hangs(visit: Visit, failed: bool, hangs: bool, to_end: bool, timeout_s: float) -> str:
    if hangs and visit.fault is not None:
        remedy = f"\nWhat to do: {words.REMEDIES['uneven']}" if visit.fault.less_often else ""
        return "Yes: " + visit.fault.text.removeprefix("HANG: ") + remedy
    if failed:
        return words.HANGS["failed"]
    if visit.timed_out:
        return words.HANGS["limit"].format(limit_s=timeout_s) + (
            f"\n{visit.fault.text}" if visit.fault else ""
        )
    steps = min(_counts(visit), default=0)
    return words.HANGS["no" if steps else "no step"].format(
        steps=steps, whole=words.HANGS["end"] if to_end else ""
    )


def _gpus(visit: Visit, cost: Costs | None) -> tuple[str, list[Said], str]:
    """What the rehearsal has found: (the verdict, [`Said`, ...], how it was looked for)."""
    rehearsal = visit.rehearsal
    if visit.not_rehearsed:
        return words.GPUS["not judged"].format(error=visit.not_rehearsed), [], ""
    if rehearsal is None:
        return (
            words.GPUS[
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
        return words.GPUS["failed"].format(error=error), [], ""
    from manyhands.rehearsal import telling

    said = [_of_rehearsal(one) for one in rehearsal.findings]
    open_ends = [words.GPUS[key] for key in ("waits", "ended", "cut") if getattr(rehearsal, key)]
    if not rehearsal.calls and not said:
        return " ".join(open_ends) or words.GPUS["no call"], [], ""
    count = sum(one.key != "remark" for one in said)
    text = words.GPUS["some" if count else "none"].format(
        count=count,
        seen=telling.seen(rehearsal.traces),
        what="thing was" if count == 1 else "things were",
    )
    far = words.GPUS["steps" if rehearsal.whole else "end"].format(steps=STEPS)
    return (
        " ".join([*open_ends, text]),
        said,
        words.GPUS["rest"].format(far=far, cannot=telling.CANNOT_SEE),
    )


def _of_rehearsal(finding: RuleFinding) -> Said:
    place = f"{finding.file}:{finding.line}" if finding.file else "outside your code"
    title = f"{words.SEVERITIES[finding.severity]}: {place}, {ranks_text(finding.ranks)}"
    return Said(
        "remark" if finding.is_remark else "gpu",
        f"{finding.call} {finding.text}.",
        title,
        _capital(finding.remedy) + ".",
    )


def _measured(evidence: Evidence | None, wrong: Sequence[Finding] = ()) -> list[tuple[str, str]]:
    """The numbers behind the verdict; those that a right script's remarks explain are left out."""
    if evidence is None or evidence.ranks == 1:
        return []
    if not evidence.count:
        return [("steps compared", "0")]
    found = [
        ("steps compared", str(evidence.count)),
        ("rows in a step, by rank", " ".join(str(len(rows)) for rows in evidence.steps[0].rows)),
        ("type of the weights", evidence.dtype.removeprefix("torch.")),
    ]
    if not evidence.sharded:
        far = max(max(evidence.weights_apart(number)) for number in range(evidence.count))
        found.append(
            ("distance between the ranks' weights, relative to their length", f"{far:.1e}")
        )
        way = moved_apart(evidence)
        # rounding decides where Adam goes with a gradient of nothing
        if way and not evidence.first["scaled"] and (wrong or max(way) < evidence.tolerance):
            found.append(
                (
                    (
                        f"change of the weights in {evidence.count} steps, compared with the "
                        "gradients of a single process"
                    ),
                    f"{max(way):.1e} apart",
                )
            )
    tried = remark_rules.tried(evidence)
    if tried is not None and not remark_rules.disagree(evidence):
        found.append(
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
        found.append(
            ("learning rate in the first step", " ".join(f"{float(rate):.4g}" for rate in rates))
        )
    return found


# -- words -----------------------------------------------------------------------------------------


def _mistake(finding: Finding, visit: Visit) -> Said:
    title, text, remedy, units = words.MISTAKES[finding.key]
    other: str = finding.values.get("remedy") or ""
    if other == "uneven":  # the batches, and not the collective, are what to learn about
        units = ("06", "14")
    return Said(
        finding.key,
        _capital(text.format(**shown(finding.values, visit))),
        title,
        words.REMEDIES.get(other, remedy),
        units,
    )


def _remark(finding: Finding) -> Said:
    return Said(
        finding.key,
        _capital(words.REMARKS[finding.key].format(**shown(finding.values))),
        units=words.REMARK_UNITS.get(finding.key, ()),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
