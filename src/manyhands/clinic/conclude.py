"""From a visit to what is said of it: verdicts, mistakes, remarks, costs and units, as text for any page."""

from dataclasses import dataclass, field

from manyhands.clinic import clinic_words as words
from manyhands.clinic import costs, judge, layouts
from manyhands.clinic.evidence import moved_apart, of_torch
from manyhands.clinic.judge import Finding
from manyhands.clinic.visit import STEPS
from manyhands.cluster.faults.sentences import ranks_text
from manyhands.command_line import printable

FOUND, NOTHING, FAILS, OPEN = 1, 0, 2, 3  # exit codes
OTHER_SIZE = "Received data size doesn't match expected size"  # gloo, when it ends the process
CHANGED = {"scaled by parameter", "same but other", "length varies", "gathers rows"}  # remarks on the gradient itself
NAMED = 4  # so many names of parameters, or of files, are shown


@dataclass
class Said:
    """One mistake or remark, in words."""

    key: str
    text: str
    title: str = ""
    remedy: str = ""
    units: tuple = ()


@dataclass
class Conclusion:
    """All that the page shows."""

    visit: object
    right: str
    hangs: str
    gpus: str
    mistakes: list = field(default_factory=list)
    remarks: list = field(default_factory=list)
    measured: list = field(default_factory=list)  # (what, value)
    costs: object = None
    cost_remarks: list = field(default_factory=list)
    traceback: str = ""
    units: list = field(default_factory=list)  # (number, title, why)
    code: int = NOTHING
    gpu_findings: list = field(default_factory=list)  # of `Said`
    gpu_note: str = ""  # how it was looked for


def conclude(visit, to_end=False, timeout_s=300):
    """What is to be said of a `Visit`."""
    evidence, found, layout = layouts.examined(visit) if _stepped(visit) else (None, [], None)
    remarks = _remarks(visit, evidence)
    fault = visit.fault
    hangs = fault is not None and fault.kind in ("hang", "mismatch") and not visit.errors
    failed = bool(visit.errors or visit.told or not hangs and not visit.timed_out and _dead(visit))
    if hangs:  # a rank that has left a call out has a gradient that nothing else explains
        found = [one for one in found if one.key != "other"]
        found.append(Finding("hang", {"text": fault.text.splitlines()[0].removeprefix("HANG: ")}))
    elif fault is not None and (fault.kind == "mismatch" or _crossed(visit)):
        cause = fault.text.splitlines()[-1] if fault.kind == "mismatch" else words.CROSSED
        found.append(Finding("crossed", {"text": cause}))
    cost = costs.add_up(visit.cost) if len(visit.cost) == visit.ranks else None
    of_costs = costs.remarks(cost, "horovod" in visit.seen[0]["frameworks"]) if cost else []
    done = Conclusion(visit, _right(visit, evidence, layout, found, remarks, failed, hangs), "", "",
                      [_mistake(one, visit) for one in found], [_remark(one) for one in remarks], _measured(evidence, found),
                      cost, [_remark(one) for one in of_costs])
    done.gpus, done.gpu_findings, done.gpu_note = _gpus(visit, cost)
    done.hangs = _hangs(visit, evidence, failed, hangs, to_end, timeout_s)
    done.units = _units([*done.mistakes, *done.remarks, *done.cost_remarks])
    if failed:
        done.code, done.traceback = FAILS, _traceback(visit)
    elif found or done.gpu_findings or visit.timed_out:
        done.code = FOUND
    elif layout and not layout.checked:
        done.code = OPEN
    return done


def _dead(visit):
    """The ranks that have ended badly, without an exception and before they had written anything down."""
    return [rank for rank, code in visit.codes.items() if code not in (0, None) and rank not in visit.cost]


def _crossed(visit):
    """Whether gloo has ended a rank to which a message of another call came."""
    return any(OTHER_SIZE in text for text in visit.output.values())


def _stepped(visit):
    """Whether all ranks have come through one step."""
    return len(visit.seen) == visit.ranks and all(one["steps"] for one in visit.seen.values())


def _remarks(visit, evidence):
    found = []
    if evidence and visit.ranks > 1:
        found += judge.remarks(evidence)
        if visit.fault or visit.timed_out:
            found = [Finding("not tried: stopped", {}) if one.key == "not tried: no copy" else one for one in found]
        if not evidence.sharded and not all(of_torch(step) for step in evidence.first["steps"]):
            found.append(Finding("other optimiser", {}))
    if evidence and evidence.first["wrapper"] == "DataParallel":
        found.append(Finding("DataParallel", {}))
    elif visit.ranks == 1:
        found.append(Finding("one rank", {}))
    counts = [visit.cost[rank]["steps"] for rank in sorted(visit.cost)]
    if len(set(counts)) > 1:
        found.append(Finding("unequal steps", {"counts": ", ".join(map(str, counts))}))
    if not visit.copied:
        found.append(Finding("not copied", {}))
    if visit.left_out:
        found.append(Finding("left out", {"files": left_out_in_words(visit)}))
    return found


def left_out_in_words(visit):
    """The first names of what is missing in the copy."""
    more = len(visit.left_out) - NAMED
    return ", ".join(map(printable, visit.left_out[:NAMED])) + (f" and {more} more" if more > 0 else "")


def _right(visit, evidence, layout, found, remarks, failed, hangs):
    if evidence is None and layout is None:
        return words.VERDICTS["failed" if failed else "hung" if hangs else "no step"]
    wrong = [one for one in found if one.key != "hang"]
    if wrong:
        return words.VERDICTS["wrong"].format(count=len(wrong), what="likely mistake was" if len(wrong) == 1 else
                                              "likely mistakes were")
    if visit.ranks == 1:
        return words.VERDICTS["one"]
    if layout:
        return _looks_like(layout, evidence)
    rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.givers) or "same"
    if any(one.key in CHANGED for one in remarks):
        return words.VERDICTS["changed"].format(steps=evidence.count, rows=rows)
    if evidence.sharded:
        key = "sharded" if evidence.steps[0].right is not None else "sharded untold"
    else:
        mild = {"not copied", "left out", "sampled", "unequal steps"}
        key = "same" if all(one.key in mild for one in remarks) else "same but"
    return words.VERDICTS[key].format(steps=evidence.count, rows=rows)


def _looks_like(layout, evidence):
    """What the script looks like, and what was compared inside its groups."""
    shown = {"parts": _sets(layout.parts), "groups": _sets(layout.groups), "steps": layout.steps,
             "again": layout.again}
    said = [words.LAYOUT["looks"].format(kinds=" and ".join(words.LAYOUTS[kind].format(**shown) for kind in layout.kinds))]
    if layout.kinds == ["local"]:
        return " ".join(said + ([words.LAYOUT["local"].format(**shown)] if layout.again else []))
    if evidence is not None and layout.checked:
        rows = sum(len(evidence.steps[0].rows[rank]) for rank in evidence.givers)
        return " ".join([*said, words.LAYOUT["one process"].format(rows=rows, **shown)])
    if layout.kinds == ["flat"]:
        return " ".join([*said, words.LAYOUT["flat"]])
    said.append(words.LAYOUT["groups" if layout.checked else "not put together" if layout.groups else "nothing"].format(**shown))
    if layout.names:
        names = ", ".join(layout.names[:NAMED]) + (", ..." if len(layout.names) > NAMED else "")
        said.append(words.LAYOUT["names"].format(k=len(layout.names), names=names))
    return " ".join([*said, words.LAYOUT["open"]])


def _sets(groups):
    return ", ".join("{" + ", ".join(map(str, group)) + "}" for group in groups)


def _hangs(visit, evidence, failed, hangs, to_end, timeout_s):
    if hangs:
        return "Yes: " + visit.fault.text.removeprefix("HANG: ")
    if failed:
        return words.HANGS["failed"]
    if visit.timed_out:
        return words.HANGS["limit"].format(limit_s=timeout_s) + (f"\n{visit.fault.text}" if visit.fault else "")
    steps = min((one["steps"] for one in visit.cost.values()), default=0)
    return words.HANGS["no"].format(steps=steps, whole=words.HANGS["end"] if to_end else "")


def _gpus(visit, cost):
    """What the rehearsal has found: (the verdict, [`Said`, ...], how it was looked for)."""
    rehearsal = visit.rehearsal
    if rehearsal is None:
        return words.GPUS["gpu" if cost and cost.gpu else "launcher" if visit.launcher != "torchrun" else
                          "one rank" if visit.ranks == 1 else "not tried"], [], ""
    if rehearsal.errors:
        error = rehearsal.errors[min(rehearsal.errors)].strip().splitlines()[-1]
        return words.GPUS["failed"].format(error=error), [], ""
    from manyhands.rehearsal import telling

    said, count = [], len(rehearsal.findings)
    for one in rehearsal.findings:
        place = f"{one.file}:{one.line}" if one.file else "no line of yours"
        title = f"{words.SEVERITIES[one.severity]}: {place}, {ranks_text(one.ranks)}"
        said.append(Said("gpu", f"{one.call} {one.text}.", title, _capital(one.remedy) + "."))
    text = words.GPUS["some" if count else "none"].format(count=count, seen=telling.seen(rehearsal.traces),
                                                          what="thing was" if count == 1 else "things were")
    open_ends = [words.GPUS[key] for key in ("waits", "cut") if getattr(rehearsal, key)]
    far = words.GPUS["steps" if rehearsal.whole else "end"].format(steps=STEPS)
    return " ".join([*open_ends, text]), said, words.GPUS["rest"].format(far=far, cannot=telling.CANNOT_SEE)


def _measured(evidence, wrong=()):
    """The numbers behind the verdict; those that a right script's remarks explain are left out."""
    if evidence is None or evidence.ranks == 1:
        return []
    found = [("steps compared", str(evidence.count)),
             ("rows in a step, by rank", " ".join(str(len(rows)) for rows in evidence.steps[0].rows)),
             ("type of the weights", evidence.dtype.removeprefix("torch."))]
    if not evidence.sharded:
        far = max(max(evidence.weights_apart(number)) for number in range(evidence.count))
        found.append(("weights of the ranks apart, in parts of their length", f"{far:.1e}"))
        way = moved_apart(evidence)
        if way and (wrong or max(way) < evidence.tolerance):  # rounding decides where Adam goes with a gradient of nothing
            found.append((f"way of the weights in {evidence.count} steps, against the same steps with the gradients of "
                          "one process", f"{max(way):.1e} apart"))
    tried = judge.tried(evidence)
    if tried is not None and not judge.disagree(evidence):
        found.append(("first gradient, against a copy of the model that got the rows of all ranks at once",
                      f"{tried:.1e} apart"))
    rates = [options["lr"] for options, _ in evidence.of(0, "groups")[0] if options.get("lr") is not None]
    if rates:
        found.append(("learning rate in the first step", " ".join(f"{float(rate):.4g}" for rate in rates)))
    return found


# -- words -------------------------------------------------------------------------------------------------------------


def _mistake(finding, visit):
    title, text, remedy, units = words.MISTAKES[finding.key]
    return Said(finding.key, text.format(**_shown(finding.values, visit)), title, remedy, units)


def _remark(finding):
    return Said(finding.key, words.REMARKS[finding.key].format(**_shown(finding.values)),
                units=words.REMARK_UNITS.get(finding.key, ()))


def _shown(values, visit=None):
    """The values as text for the sentences."""
    shown = dict(values)
    if visit:
        shown.update(n=values.get("n", visit.ranks), steps=len(visit.seen[0]["steps"]) if 0 in visit.seen else 0)
    if "ranks" in values:
        shown["ranks_n"] = values["ranks"]
        if isinstance(values["ranks"], list):
            shown["ranks"] = _capital(ranks_text(values["ranks"]))
    if "names" in values:
        names = values["names"]
        shown.update(names=", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else ""), k=len(names))
    for name in ("share", "apart", "part"):
        if name in values:
            shown["percent"] = percent(values[name])
    for name in ("least", "most"):
        if name in values:
            shown[name] = percent(values[name])
    for name in ("shares", "norms", "rates"):
        if name in values:
            shown[name] = ", ".join(f"{one:.3g}" for one in values[name])
    for name in ("told", "first", "seeds", "lengths"):
        if name in values:
            shown[name] = ", ".join(map(str, values[name]))
    shown["data_parallel"] = (" nn.DataParallel knows nothing of other processes." if values.get("wrapper") ==
                              "DataParallel" else "")
    return shown


def percent(part):
    if part == float("inf") or part > 100:
        return "more than 100 times"
    return f"{part:.0%}" if part >= 0.095 else f"{part:.1%}" if part >= 0.00095 else f"{part:.1e}"


def _capital(text):
    return text[:1].upper() + text[1:]


def _traceback(visit):
    """That of the rank that failed first, shortened; what the launcher said where no rank came so far."""
    if visit.fault is not None and visit.fault.kind in ("died", "mismatch"):
        ends = [visit.output[rank][-2000:] for rank in visit.fault.culprits if rank not in visit.errors]
        return "\n".join([visit.fault.text, *ends])
    if not visit.errors:
        ends = [f"rank {rank} ended with exit code {visit.codes[rank]}\n{visit.output[rank][-2000:]}"
                for rank in _dead(visit)]
        return visit.told or "\n".join(ends)
    fault = visit.fault
    rank = next((rank for rank in getattr(fault, "culprits", []) if rank in visit.errors), min(visit.errors))
    lines = visit.errors[rank]["traceback"].rstrip().splitlines()
    if len(lines) > 24:
        lines = [*lines[:8], "  ...", *lines[-15:]]
    others = sorted(set(visit.errors) - {rank})
    also = [f"({_capital(ranks_text(others))} failed too.)"] if others else []
    return "\n".join([f"rank {rank}:", *lines, *also])


def _units(said):
    """[(number, title, why)] in the order of the units; the units that treat what was found."""
    import tomllib
    from importlib.resources import files

    units = tomllib.loads((files("manyhands") / "units.toml").read_text(encoding="utf-8"))["unit"]
    titles = {unit["name"][:2]: unit["title"] for unit in units}
    why = {}
    for one in said:
        for number in one.units:
            why.setdefault(number, []).append(one.title or one.key)
    return [(number, titles[number], ", ".join(dict.fromkeys(why[number]))) for number in sorted(why)]

