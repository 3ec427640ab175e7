"""The page that the learner lands on, `work/Start_Here.md`:
made anew at each start and whenever progress is written."""

import functools
import json
import os
import tempfile
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from string import Template

from manyhands.checks import progress
from manyhands.learner import for_instructors
from manyhands.learner.copies import lab_copy, tutorial_copy
from manyhands.learner.released import due_file, due_in, labs_in
from manyhands.machine import horovod_build, memory_gb, processors, says
from manyhands.units import NotAClone, find_root, minutes_text, paths, units

NAME = "Start_Here.md"
EXCHANGE = """
**Labs that your instructor releases** are in the menu under *Nbgrader*, *Assignment List*. There you fetch a lab (it is copied to `work/`), hand it in (*Submit*),
and get your feedback. Before you hand it in, save the notebook with Ctrl+S. You may hand in a lab again, and only the last one counts.
"""  # noqa: E501
DUE = """
**Due:** {labs}.
"""
TO_FETCH = "your lab (to fetch)"
PATHS = {"one_day": ["one_day"], "two_days": ["one_day", "two_days_more"],
         "three_days": ["one_day", "two_days_more", "three_days_more"]}
GREY = '<span style="color: #8a8a8a">{}</span>'


def write(root):
    """Write the page of the clone at `root`; returns its path. Call it after progress was written."""
    work = Path(root) / "work"
    work.mkdir(exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=work, prefix=".start-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text(root))
    os.chmod(temporary, 0o644)
    os.replace(temporary, work / NAME)
    return work / NAME


def renew():
    """Write it anew where the learner is, after something has changed; a page that cannot be written costs no work."""
    with suppress(NotAClone, OSError):
        root = find_root()
        if (root / "work").is_dir():
            write(root)


def text(root):
    """The page, as Markdown."""
    course, done, missing = units(root), progress.load(Path(root) / "work"), to_fetch(root)
    template = Template(files("manyhands.learner").joinpath("start_page.md").read_text(encoding="utf-8"))
    return template.substitute(
        machine=machine(), notice=notice() + building(root) + due(course) + for_instructors.section(root, course),
        next=next_step(course, done, missing), table=table(course, done, missing),
        check=f"`manyhands check {_any_ready(course)}`",
        **{path: path_line(course, path) for path in paths()},
        **{f"{path}_left": time_left(course, done, path) for path in PATHS},
        predictions=predictions(course, done),
    )


def _any_ready(course):
    return next((unit.number for unit in course if not unit.planned), course[0].number)


@functools.cache
def machine():
    """What this machine can do, in one line; `manyhands doctor` tells more."""
    gpus = [line for line in (says("nvidia-smi", "-L") or "").splitlines() if line.startswith("GPU ")]
    nodes = says("sinfo", "--noheader", "--format=%D", timeout_s=2)
    parts = [f"{processors()} CPU cores", f"{memory_gb()} GB memory",
             f"{len(gpus)} GPU" + "s" * (len(gpus) > 1) if gpus else "no GPU, so everything runs on the CPU"]
    if nodes:
        parts.append(f"Slurm with {nodes.split()[0]} nodes")
    return " · ".join(parts)


def notice():
    """A paragraph about the account, which a classroom's hub gives (MANYHANDS_NOTICE), or nothing."""
    told = os.environ.get("MANYHANDS_NOTICE")
    return (f"\n**Your account:** {told}\n" if told else "") + (EXCHANGE if _exchange() else "")


def building(root):
    """A paragraph on Horovod while the set-up builds it in the background, or nothing."""
    how_far = horovod_build(root)
    return f"\n**Horovod is not ready yet** ({how_far}). Meanwhile, everything but unit 10 works.\n" if how_far else ""


def _exchange():
    """Where labs are fetched from, on a server of a class's hub; else None."""
    return os.environ.get("MANYHANDS_EXCHANGE") if "JUPYTERHUB_USER" in os.environ else None


def due_file_here():
    """The file that tells when labs are due, on a server of a class's hub; else None."""
    return due_file(_exchange()) if _exchange() else None


def due(course):
    """A paragraph that says until when the labs are to be handed in which the class has released, or nothing."""
    titles = {unit.name: f"{unit.number} {unit.title}" for unit in course}
    told = due_in(_exchange()) if _exchange() else []
    return DUE.format(labs=" · ".join(f"{titles.get(name, name)}: {when}" for name, when in told)) if told else ""


def released():
    """The labs that can be fetched."""
    return labs_in(_exchange()) if _exchange() else []


def to_fetch(root):
    """Those of them that the learner has not yet."""
    return [name for name in released() if not (Path(root) / "work" / name).exists()]


def next_step(course, done, missing):
    """The first unit whose lab has not full marks yet."""
    for unit in course:
        if unit.planned or _full(done.get(unit.name, {})):
            continue
        return (
            f"unit {unit.number}, {unit.title}: {_link('tutorial', tutorial_copy(unit.name))}, then "
            f"{_lab(unit, missing)}."
        )
    return (
        "you have full marks in every lab that is ready."
        if any(not unit.planned for unit in course)
        else "no unit is ready yet."
    )


def table(course, done, missing):
    lines = ["| # | unit | points | tutorial | lab | slides | minutes | ranks | framework |",
             "|---|---|---|---|---|---|---|---|---|"]
    return "\n".join(lines + [_row(unit, done.get(unit.name, {}), missing) for unit in course])


def _row(unit, points, missing):
    if unit.planned:
        cells = [unit.number, unit.title, "coming", "", "", "", "", "", unit.framework]
        return "| " + " | ".join(cell and GREY.format(cell) for cell in cells) + " |"
    cells = [unit.number, unit.title, _points(unit, points), _link("tutorial", tutorial_copy(unit.name)),
             _lab(unit, missing), _link("slides", "../" + unit.slides) if unit.slides else "", minutes_text(unit),
             str(unit.ranks or ""), unit.framework]
    return "| " + " | ".join(cells) + " |"


PREDICTIONS = """
## Your predictions

{table}

The surprise is 0 for a right prediction and 1 for a wrong choice. For a wrong number, it says how many times you must double the smaller of the two numbers to get
the larger one. The table shows the mean over your predictions.
"""  # noqa: E501


def predictions(course, done):
    """How often the learner was right before a run, and how surprised; nothing before the first prediction."""
    rows = [row for unit in course if (row := _predicted(unit, done.get(unit.name, {}).get("predictions")))]
    head = ["| # | unit | predicted | right | surprise |", "|---|---|---|---|---|"]
    return PREDICTIONS.format(table="\n".join(head + rows)) if rows else ""


def _predicted(unit, made):
    listed = made.values() if isinstance(made, dict) else ()
    settled = [one for one in listed if isinstance(one, dict) and "right" in one]
    if not settled:
        return ""
    right, surprise = sum(one["right"] for one in settled), sum(one["surprise"] for one in settled) / len(settled)
    return f"| {unit.number} | {unit.title} | {len(settled)} | {right} | {surprise:.1f} |"


def _lab(unit, missing):
    return TO_FETCH if unit.name in missing else _link("your lab", lab_copy(unit.name))


def _full(points):
    """Whether a unit's lab has all its points."""
    return "max" in points and points.get("points") == points["max"]


def _points(unit, points):
    """`5 of 8`, those of the last `manyhands check`, and how many checks were seen green in the notebook."""
    graded = f"{'✓ ' if _full(points) else ''}{points['points']:g} of {points['max']:g}" if "max" in points else ""
    seen = len(progress.seen_green(points))
    green = [f"{seen} of {max(seen, checks_in(unit))}", "seen green"] if seen and not _full(points) else []
    lines = [graded, *green]
    return "<br>".join(line.replace(" ", "\N{NO-BREAK SPACE}") for line in lines if line)


def checks_in(unit):
    """How many checks the unit's lab has; 0 where it cannot be read."""
    try:
        cells = json.loads((unit.root / unit.lab).read_bytes())["cells"]
        return sum("check" in cell["metadata"].get("tags", []) for cell in cells)
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _link(label, path):
    """A link to a path as seen from `work/`, where the page lies."""
    return f"[{label}]({path})"


def units_of(course, path):
    """The units of a path of `PATHS`, in order."""
    numbers = {number for part in PATHS[path] for number in paths()[part]}
    return [unit for unit in course if unit.number in numbers]


def time_left(course, done, path):
    """`about 5 h 10 min left`: the minutes of the path's units that are there, without what is done."""
    minutes = sum(_minutes_left(unit, done.get(unit.name, {})) for unit in units_of(course, path) if not unit.planned)
    hours, rest = divmod(5 * round(minutes / 5), 60)
    return "done" if not minutes else f"about {f'{hours} h ' if hours else ''}{rest} min left"


def _minutes_left(unit, points):
    """All of a unit that is not begun; of one whose lab is begun, the part of the lab that is not solved."""
    tutorial, lab = (part or 0 for part in unit.minutes)
    solved = points["points"] / points["max"] if points.get("max") else 0
    seen = len(progress.seen_green(points)) / max(1, checks_in(unit))
    share = min(1, max(solved, seen))
    return 0 if _full(points) else lab * (1 - share) + (0 if share else tutorial)


def path_line(course, path):
    """The units of a path, those that are ready as links."""
    by_number = {unit.number: unit for unit in course}
    chosen = [by_number[number] for number in paths()[path]]
    shown = [f"{unit.number} {unit.title}" for unit in chosen]
    return " · ".join(GREY.format(name) if unit.planned else _link(name, tutorial_copy(unit.name))
                      for unit, name in zip(chosen, shown))
