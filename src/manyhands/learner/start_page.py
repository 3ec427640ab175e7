"""The page that the learner lands on, `work/Start_Here.md`.

It is made anew at each start and whenever progress is written.
"""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from manyhands.checks import progress
from manyhands.learner import for_attendees, for_instructors, notebook_state
from manyhands.learner.copies import lab_copy, tutorial_copy
from manyhands.learner.markdown import code, link, plain
from manyhands.machine import horovod_build, memory_gb, processors, says
from manyhands.units import NotACloneError, find_root, minutes_in_class, minutes_text, paths, units

if TYPE_CHECKING:
    from manyhands.units import Unit

NAME = "Start_Here.md"
TO_FETCH = "your lab (to fetch)"
PATHS = {
    "one_day": ["one_day"],
    "two_days": ["one_day", "two_days_more"],
    "three_days": ["one_day", "two_days_more", "three_days_more"],
}
Progress = Mapping[str, progress.Entry]  # by unit
PLANNED = "*{}*"


def write(root: str | Path) -> Path:
    """Write the page of the clone at `root`, after feedback that is waiting has been fetched.

    Returns its path. Call it after progress was written. A page that would be the same is left
    alone, so that no browser loads it again.
    """
    work = Path(root) / "work"
    work.mkdir(exist_ok=True)
    for_attendees.fetch_feedback(root)
    # a notebook may hold half of a character
    new = text(root).encode("utf-8", "replace").decode("utf-8")
    if _holds(work / NAME, new):
        return work / NAME
    handle, temporary = tempfile.mkstemp(dir=work, prefix=".start-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(new)
    os.chmod(temporary, 0o644)
    os.replace(temporary, work / NAME)
    return work / NAME


def _holds(path: Path, content: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == content
    except (OSError, UnicodeDecodeError):
        return False


def renew() -> None:
    """Write the page anew where the learner is, after something has changed.

    A page that cannot be written costs no work.
    """
    with suppress(NotACloneError, OSError):
        root = find_root()
        if (root / "work").is_dir():
            write(root)


def text(root: str | Path) -> str:
    """The page, as Markdown."""
    course, done = units(root), progress.load(Path(root) / "work")
    missing = for_attendees.to_fetch(root)
    template = Template(
        files("manyhands.learner").joinpath("start_page.md").read_text(encoding="utf-8")
    )
    return template.substitute(
        machine=machine(),
        left_off=left_off(root, course, done),
        next=next_step(course, done, missing),
        notice=building(root)
        + for_attendees.section(root, course)
        + for_instructors.section(root, course),
        table=table(course, done, missing, for_attendees.lab_states(root)),
        check=f"`manyhands check {_any_ready(course)}`",
        **{path: path_line(course, path) for path in paths()},
        **{f"{path}_times": times(course, done, path) for path in PATHS},
        predictions=predictions(course, done),
    )


def _any_ready(course: Sequence[Unit]) -> str:
    return next((unit.number for unit in course if not unit.planned), course[0].number)


@functools.cache
def machine() -> str:
    """What this machine can do, in one line; `manyhands doctor` tells more."""
    gpus = [
        line for line in (says("nvidia-smi", "-L") or "").splitlines() if line.startswith("GPU ")
    ]
    nodes = says("sinfo", "--noheader", "--format=%D", timeout_s=2)
    parts = [
        f"{processors()} CPU cores",
        f"{memory_gb()} GB memory",
        (
            f"{len(gpus)} GPU" + "s" * (len(gpus) > 1)
            if gpus
            else "no GPU, so everything runs on the CPU"
        ),
    ]
    if nodes:
        parts.append(f"Slurm with {nodes.split()[0]} nodes")
    return " · ".join(parts)


def building(root: str | Path) -> str:
    """A paragraph on Horovod while the set-up builds it in the background, or nothing."""
    how_far = horovod_build(root)
    return (
        f"\n**Horovod is not ready yet** ({how_far}). Meanwhile, everything but unit 10 works.\n"
        if how_far
        else ""
    )


LEFT_OFF = """
**Continue where you left off:** {notebook}, {cell}.
"""


def left_off(root: str | Path, course: Sequence[Unit], done: Progress) -> str:
    """A paragraph with a link to the cell that the learner ran last, or nothing."""
    place = notebook_state.left_off(root, done)
    if not place:
        return ""
    usual = {tutorial_copy(place.unit): "tutorial", lab_copy(place.unit): "lab"}
    titles = {unit.name: f"{unit.number} {unit.title}" for unit in course}
    title = (
        f"{titles.get(place.unit, plain(place.unit))}, {usual.get(place.name, plain(place.name))}"
    )
    path = quote(place.name)
    if not place.cell:
        return LEFT_OFF.format(
            notebook=link(title, path), cell="whose last cell that you ran no longer exists"
        )
    heading = f" in *{plain(place.cell.heading)}*" if place.cell.heading else ""
    last = (
        f"code cell {place.number} of {place.total}{heading}, which begins with "
        f"{code(place.cell.line)}"
    )
    return LEFT_OFF.format(
        notebook=link(title, f"{path}#cell-id={quote(place.cell.id)}"), cell=last
    )


def next_step(course: Sequence[Unit], done: Progress, missing: Container[str]) -> str:
    """The first unit whose lab is not solved yet."""
    for unit in course:
        entry = done.get(unit.name, {})
        if unit.planned or _solved(unit, entry):
            continue
        ran, total = notebook_state.tutorial_run(unit, entry)
        tutorial = (
            f"{'the rest of the ' if ran else ''}{link('tutorial', tutorial_copy(unit.name))}, "
            "then "
        )
        return (
            f"unit {unit.number}, {unit.title}: "
            f"{'' if 0 < total == ran else tutorial}{_lab(unit, missing)}."
        )
    return (
        "you have solved every lab that is ready. `manyhands check` in a terminal records your "
        "points."
        if any(not _full(done.get(unit.name, {})) for unit in course if not unit.planned)
        else (
            "you have full marks in every lab that is ready."
            if any(not unit.planned for unit in course)
            else "no unit is ready yet."
        )
    )


def _solved(unit: Unit, entry: progress.Entry) -> bool:
    """Whether a unit's lab has all its points, or all its checks were green in the notebook."""
    checks = checks_in(unit)
    return _full(entry) or 0 < checks <= len(progress.seen_green(entry))


def table(
    course: Sequence[Unit], done: Progress, missing: Container[str], states: Mapping[str, str]
) -> str:
    """Write the units with the learner's progress.

    `states`: what is said of each lab that was handed in.
    """
    lines = [
        "| # | unit | points | tutorial | lab | slides | minutes | ranks | framework |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(
        lines
        + [
            _row(unit, done.get(unit.name, {}), missing, states.get(unit.name, ""))
            for unit in course
        ]
    )


def _row(unit: Unit, points: progress.Entry, missing: Container[str], handed_in: str = "") -> str:
    if unit.planned:
        cells = [unit.number, unit.title, "coming", "", "", "", "", "", unit.framework]
        return "| " + " | ".join(cell and PLANNED.format(cell) for cell in cells) + " |"
    tutorial = _with(link("tutorial", tutorial_copy(unit.name)), _tutorial_state(unit, points))
    lab = _with(_lab(unit, missing), handed_in)
    cells = [
        unit.number,
        unit.title,
        _points(unit, points),
        tutorial,
        lab,
        link("slides", "../" + unit.slides) if unit.slides else "",
        minutes_text(unit),
        str(unit.ranks or ""),
        unit.framework,
    ]
    return "| " + " | ".join(cells) + " |"


def _with(what: str, state: str) -> str:
    return f"{what}<br>{state}" if state else what


def _tutorial_state(unit: Unit, entry: progress.Entry) -> str:
    """Say how many cells of the tutorial have run.

    It also says how many of its questions were answered by a prediction.
    """
    ran, total = notebook_state.tutorial_run(unit, entry)
    predicted, asked = len(entry.get("predictions", {})), notebook_state.questions_in(unit)
    return _lines(
        f"{'✓ ' if ran == total else ''}{ran} of {total} cells" if ran else "",
        f"{predicted} of {max(predicted, asked)} predicted" if predicted else "",
    )


PREDICTIONS = """
## Your predictions

{table}

The surprise is 0 for a right prediction and 1 for a wrong choice. For a wrong number, it says how many times you must double the smaller of the two numbers to get
the larger one. The table shows the mean over your predictions.
"""


def predictions(course: Sequence[Unit], done: Progress) -> str:
    """Say how often the learner was right before a run, and how surprised.

    There is nothing before the first prediction.
    """
    rows = [
        row
        for unit in course
        if (row := _predicted(unit, done.get(unit.name, {}).get("predictions")))
    ]
    head = ["| # | unit | predicted | right | surprise |", "|---|---|---|---|---|"]
    return PREDICTIONS.format(table="\n".join(head + rows)) if rows else ""


def _predicted(unit: Unit, made: Any) -> str:
    listed = made.values() if isinstance(made, dict) else ()
    settled = [
        prediction
        for prediction in listed
        if isinstance(prediction, dict) and "right" in prediction
    ]
    if not settled:
        return ""
    right, surprise = (
        sum(prediction["right"] for prediction in settled),
        sum(prediction["surprise"] for prediction in settled) / len(settled),
    )
    return f"| {unit.number} | {unit.title} | {len(settled)} | {right} | {surprise:.1f} |"


def _lab(unit: Unit, missing: Container[str]) -> str:
    return TO_FETCH if unit.name in missing else link("your lab", lab_copy(unit.name))


def _full(points: progress.Entry) -> bool:
    """Whether a unit's lab has all its points."""
    return "max" in points and points.get("points") == points["max"]


def _points(unit: Unit, points: progress.Entry) -> str:
    """Write `5 of 8`, the points of the last `manyhands check`.

    It also says how many checks were seen green in the notebook.
    """
    graded = (
        f"{'✓ ' if _full(points) else ''}{points['points']:g} of {points['max']:g}"
        if "max" in points
        else ""
    )
    seen = len(progress.seen_green(points))
    green = (
        [f"{seen} of {max(seen, checks_in(unit))}", "seen green"]
        if seen and not _full(points)
        else []
    )
    return _lines(graded, *green)


def _lines(*lines: str) -> str:
    """What one cell of the table shows, in lines that are not broken; empty ones are left out."""
    return "<br>".join(line.replace(" ", "\N{NO-BREAK SPACE}") for line in lines if line)


def checks_in(unit: Unit) -> int:
    """How many checks the unit's lab has; 0 where it cannot be read."""
    try:
        cells = json.loads((unit.root / (unit.lab or "")).read_bytes())["cells"]
        return sum("check" in cell["metadata"].get("tags", []) for cell in cells)
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def units_of(course: Sequence[Unit], path: str) -> list[Unit]:
    """The units of a path of `PATHS`, in order."""
    numbers = {number for part in PATHS[path] for number in paths()[part]}
    return [unit for unit in course if unit.number in numbers]


def times(course: Sequence[Unit], done: Progress, path: str) -> str:
    """`in class: 6 h 40 min; alone: 5 h of tutorials and 7 h of labs, with 3 h left`.

    The minutes alone are those of the path's units that are there.
    """
    ready = [unit for unit in units_of(course, path) if not unit.planned]
    tutorials, labs = (sum(unit.minutes[part] or 0 for unit in ready) for part in (0, 1))
    left = sum(_minutes_left(unit, done.get(unit.name, {})) for unit in ready)
    rest = (
        ", all of which is done"
        if ready and not left
        else f", with about {_hours(left)} left"
        if round(left) < tutorials + labs
        else ""
    )
    return (
        f"in class: {_hours(minutes_in_class()[path])}; "
        f"alone: {_hours(tutorials)} of tutorials and {_hours(labs)} of labs{rest}"
    )


def _hours(minutes: float) -> str:
    """`5 h 10 min`, to five minutes."""
    hours, rest = divmod(5 * round(minutes / 5), 60)
    return " ".join([f"{hours} h"] * bool(hours) + [f"{rest} min"] * bool(rest or not hours))


def _minutes_left(unit: Unit, points: progress.Entry) -> float:
    """All of a unit that is not begun.

    Of a tutorial the part whose cells have not run, unless the lab is begun; of a lab the part that
    is not solved.
    """
    tutorial, lab = (part or 0 for part in unit.minutes)
    solved = points["points"] / points["max"] if points.get("max") else 0
    seen = len(progress.seen_green(points)) / max(1, checks_in(unit))
    share = min(1, max(solved, seen))
    ran, total = notebook_state.tutorial_run(unit, points)
    unread = 0 if share else 1 - ran / max(1, total)
    return 0 if _full(points) else lab * (1 - share) + tutorial * unread


def path_line(course: Sequence[Unit], path: str) -> str:
    """The units of a path, those that are ready as links."""
    by_number = {unit.number: unit for unit in course}
    chosen = [by_number[number] for number in paths()[path]]
    shown = [f"{unit.number} {unit.title}" for unit in chosen]
    return " · ".join(
        PLANNED.format(name) if unit.planned else link(name, tutorial_copy(unit.name))
        for unit, name in zip(chosen, shown, strict=True)
    )
