"""The pages in front of the others.

They are the first page, and the lists of tutorials, labs, slides and manuals.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyhands.units import Unit

# a cover is drawn for the deck's letters; without them, words may be longer than its frame
WIDER = 40
FIRST = Path(__file__).with_name("first_page.md")
TOTAL = '<p class="prediction-total" hidden></p>\n\n'
FIGURE = (
    '<li><a href="notebooks/00_preflight.html#try-it-here">Make four ranks hang, in your '
    "browser</a></li>"
)
FRONT_PICTURE = "00_absent"
MANUALS = {  # the others are listed under the last heading, without a sentence
    "For attendees": {
        "README": (
            "What you need, how to begin, what each unit takes, and on which hardware it has been "
            "run."
        ),
        "docs/SETUP": (
            "What `make lab` installs, and how to use a mirror, conda or a different Python."
        ),
        "docs/CLINIC": (
            "`manyhands clinic` checks your own training script for mistakes, hangs and costs."
        ),
        "docs/HANGS": "How to read the report of a hang, and how to find a hang in your own job.",
        "docs/PREDICT": (
            "`manyhands predict` tells you how long your script would take on a different machine."
        ),
        "docs/SIMULATE": (
            "The simulator computes how long a training step takes, for any machine, model and "
            "method."
        ),
    },
    "For instructors": {
        "docs/TEACHING": (
            "Schedules, what to show live, typical questions, and what to do when something fails."
        ),
        "docs/GRADING": (
            "Five commands release labs to a class, collect them, grade them and return feedback."
        ),
        "docs/HUB": (
            "Two commands give a class accounts on one machine, and a board that shows who is stuck"
            " where."
        ),
        "docs/HACKATHON": (
            "How teams enter, how the judge computes scores, and how you run an event."
        ),
        "docs/ATTACKS": "What a hostile submission can try, and what prevents it.",
    },
    "What runs, and how fast": {
        "docs/SYSTEMS": (
            "Every system in the five documents that the course grew out of, and what became of it."
        ),
        "docs/CHAINERMN": "Six complete ChainerMN programs, and the same programs in this course.",
        "docs/BENCHMARKS": "All measured figures, each next to a named peer in the same run.",
        "docs/GPU": "What has been run on a GPU, including what failed.",
    },
    "For maintainers": {
        "CONTRIBUTING": "Where things are, and a recipe for each kind of change.",
        "CHANGELOG": "What has changed between versions.",
        "SECURITY": "How to report a hole, and what is defended.",
        "CODE_OF_CONDUCT": "How people who work on the course treat each other.",
        "docker/README": "The images and the compose files.",
        "tests/mutants/README": "How wrong solutions test the checks.",
    },
}


def first_page(root: Path, there: Sequence[Unit]) -> str:
    """The front page: one picture, one sentence, three doors, and a card for each unit."""
    picture = (
        _alt(root, "00_preflight", FRONT_PICTURE)
        or "Ranks that wait for a rank that did not arrive"
    )
    figure = FIGURE if any(unit.number == "00" for unit in there) else ""
    text = FIRST.read_text(encoding="utf-8")
    return text.format(
        picture=escape(picture), units=len(there), figure=figure, cards=cards(root, there, "", "h3")
    )


def cards(root: Path, there: Iterable[Unit], up: str, heading: str) -> str:
    """A card for each unit, with its picture, its sentence and its minutes.

    `up` leads to the first page's folder, and `heading` is the tag of the cards' titles, one level
    below the heading above them.
    """
    made = [_card(root, unit, up, heading) for unit in there]
    return '<div class="cards">\n' + "\n".join(made) + "\n</div>"


def _card(root: Path, unit: Unit, up: str, heading: str) -> str:
    alt = _alt(root, unit.name, f"{unit.number}_cover")
    picture = f'<img src="{up}_static/covers/{unit.number}.svg" alt="{escape(alt)}">' if alt else ""
    tutorial, lab = (f"{part} min" if part else "" for part in unit.minutes)
    title = f'<span class="number">{unit.number}</span> {breakable(unit.title)}'
    to_lab = f'{up}labs/{unit.name}/{unit.name}.html" aria-label="lab {lab} of unit {unit.number}'
    made = f"{escape(unit.framework)} · tutorial {tutorial}"
    return (
        f'<div class="unit-card" data-unit="{unit.number}">{picture}<{heading} '
        f'id="unit-{unit.number}"><a '
        f'href="{up}notebooks/{unit.name}.html">{title}</a></{heading}><p>{escape(unit.sentence)}</p><p'
        f' class="facts">{made} · <a href="{to_lab}">lab {lab}</a></p></div>'
    )


def breakable(title: str) -> str:
    """A title as HTML; MultiWorkerMirroredStrategy may break before a capital."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "<wbr>", escape(title))


def covers(root: Path, there: Iterable[Unit]) -> dict[str, str]:
    """{name in `_static/covers`: SVG} of the cards and of the first page."""
    wanted = {"front": FRONT_PICTURE, **{unit.number: f"{unit.number}_cover" for unit in there}}
    paths = {name: root / "slides" / "figures" / f"{figure}.svg" for name, figure in wanted.items()}
    return {
        f"{name}.svg": _wider(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.is_file()
    }


def _wider(text: str) -> str:
    def frame(match: re.Match[str]) -> str:
        left, top, width, height = map(float, match[1].split())
        return f'viewBox="{left - WIDER:g} {top:g} {width + 2 * WIDER:g} {height:g}"'

    return re.sub(r'viewBox="([^"]*)"', frame, text, count=1)


def _alt(root: Path, name: str, figure: str) -> str:
    """What the unit's deck says that a figure shows; "" if the deck does not show it."""
    deck, picture = root / "slides" / f"{name}.md", root / "slides" / "figures" / f"{figure}.svg"
    if not (deck.is_file() and picture.is_file()):
        return ""
    match = re.search(rf"!\[([^\]]+)\]\(figures/{figure}\.svg\)", deck.read_text(encoding="utf-8"))
    return match[1] if match else ""


def tutorials(root: Path, there: Iterable[Unit]) -> list[str]:
    """Write the page in front of the tutorials: a card for each unit."""
    return [
        "You can read the tutorials here with all outputs, and predict what their runs will give. "
        "To run them, use `make lab`.\n\n" + TOTAL + cards(root, there, "../", "h2")
    ]


def labs(root: Path, there: Iterable[Unit]) -> list[str]:
    """Write the page in front of the labs: a table with a download for each."""
    rows = [
        f"| {unit.number} | [{_lab_title(root, unit)}]({unit.name}/{unit.name}.ipynb) | "
        f"{breakable(unit.title)} "
        f'| {unit.minutes[1] or ""} | <a href="../downloads/{unit.name}.zip" '
        f"download>{unit.name}.zip</a> |"
        for unit in there
    ]
    return [
        (
            "Attendees get these unsolved labs, and solve them in JupyterLab, where the checks can "
            "run.\n"
        ),
        "| # | lab | unit | minutes | download |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _lab_title(root: Path, unit: Unit) -> str:
    """The lab's own title, without "06 Lab:"."""
    try:
        [first, *_] = json.loads((root / (unit.lab or "")).read_text(encoding="utf-8"))["cells"]
        [line] = re.findall(r"^# \d\d Lab: *(.+)$", "".join(first["source"]), re.MULTILINE)
        name = "." in line.split()[0]  # nn.DataParallel
        return line if name else line[0].upper() + line[1:]
    except (ValueError, KeyError, TypeError):  # a broken notebook is reported later
        return unit.title


def slides(root: Path, there: Iterable[Unit]) -> list[str]:
    """Write the page in front of the decks: a table of what they hold."""
    rows = []
    for unit in there:
        pages, subtitle = _deck(root, unit)
        deck = f'<a href="built/{unit.name}.html">{breakable(unit.title)}</a>'
        rows.append(
            f"| {unit.number} | {deck} | {subtitle} | {pages} "
            f'| <a href="built/{unit.name}.pdf" aria-label="PDF of unit {unit.number}">PDF</a> |'
        )
    return [
        (
            "Each unit has a deck, which needs no network either. In a deck, press `p` to see the "
            "speaker's notes.\n"
        ),
        "| # | deck | about | slides | to print |",
        "|---|---|---|---|---|",
        *rows,
    ]


def _deck(root: Path, unit: Unit) -> tuple[int | str, str]:
    """(number of slides, subtitle) of a unit's deck."""
    path = root / "slides" / f"{unit.name}.md"
    if not path.is_file():
        return "", ""
    _, _, text = path.read_text(encoding="utf-8").partition("\n---\n")  # after the settings
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    subtitle = re.search(r"^## (.+)$", text, re.MULTILINE)
    return len(re.findall(r"^---$", text, re.MULTILINE)) + 1, (
        subtitle[1].replace("&shy;", "") if subtitle else ""
    )


def manuals(texts: Collection[str]) -> list[str]:
    """List the manuals under their headings, each with a sentence.

    Those that `MANUALS` does not name are the last ones.
    """
    named = {name for pages in MANUALS.values() for name in pages}
    lines: list[str] = []
    for title, pages in MANUALS.items():
        sentences = {name: sentence for name, sentence in pages.items() if name in texts}
        if title == "For maintainers":
            sentences |= {name: "" for name in texts if name not in named}
        if sentences:
            lines += [
                f"## {title}\n",
                *(f"* {_doc(name)}<br>{sentence}" for name, sentence in sentences.items()),
                "",
            ]
    return lines


def _doc(name: str) -> str:
    return "[The course, and how to begin](/README.md)" if name == "README" else f"{{doc}}`/{name}`"
